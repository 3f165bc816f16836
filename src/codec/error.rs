//! How far decoded values are from what was sent.

/// Relative L2 errors of some messages, |x − x̂| ÷ |x|, each norm over one message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorSample {
    pub messages: u64,
    pub sum: f64,
    pub worst: f64,
}

impl ErrorSample {
    pub fn add(&mut self, relative_error: f64) {
        self.messages += 1;
        self.sum += relative_error;
        self.worst = self.worst.max(relative_error);
    }

    pub fn merge(&mut self, other: &Self) {
        self.messages += other.messages;
        self.sum += other.sum;
        self.worst = self.worst.max(other.worst);
    }

    pub fn mean(&self) -> f64 {
        if self.messages == 0 {
            0.0
        } else {
            self.sum / self.messages as f64
        }
    }
}

/// The relative L2 error of one message. A message of zeros that came back as zeros has none.
pub fn relative_error<T: Copy + Into<f64>>(values: &[T], decoded: &[T]) -> f64 {
    let (mut difference, mut norm) = (0.0, 0.0);
    for (&value, &back) in values.iter().zip(decoded) {
        let (value, back) = (value.into(), back.into());
        difference += (value - back) * (value - back);
        norm += value * value;
    }
    if difference == 0.0 {
        0.0
    } else {
        (difference / norm).sqrt()
    }
}
