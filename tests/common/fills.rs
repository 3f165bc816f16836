//! What became of a field with fill values that was transposed.

use super::fields::{Field, Transpose};
use super::relay::{Arrived, Relay};
use super::{Mpi, Output};

/// A transpose that was made with the library.
pub struct Transposed {
    pub arrived: Arrived<f32>,
    transpose: Transpose,
}

impl Transposed {
    pub fn new(mpi: Mpi, field: &Field, ranks: usize, rate: u32) -> Self {
        Self::along(mpi, field, ranks, rate, "auto")
    }

    pub fn along(mpi: Mpi, field: &Field, ranks: usize, rate: u32, layout: &str) -> Self {
        let rate = ("TRANSPRESS_RATE", rate.to_string());
        Self::with(
            mpi,
            field,
            ranks,
            [rate, ("TRANSPRESS_LAYOUT", layout.into())],
        )
    }

    /// Under variables of the environment.
    pub fn with<const N: usize>(
        mpi: Mpi,
        field: &Field,
        ranks: usize,
        variables: [(&str, String); N],
    ) -> Self {
        let transpose = Transpose::new(field.extents, ranks);
        let relay = Relay::alltoallv(mpi, ranks, "float", transpose.table.clone());
        let set = |relay: Relay, (name, value): (&str, String)| relay.env(name, value);
        let relay = variables.into_iter().fold(relay, set);
        let arrived = relay.send(&transpose.cut(&field.values));
        Self { arrived, transpose }
    }

    pub fn output(&self) -> &Output {
        &self.arrived.output
    }

    /// What was sent and what arrived, for every point of `of` that went to another rank.
    fn points(&self, of: &[bool]) -> Vec<(f32, f32)> {
        let wanted = self.transpose.cut(of);
        let both = self.arrived.sent.iter().zip(&self.arrived.values);
        both.zip(wanted.into_iter().zip(self.transpose.travels()))
            .filter(|(_, (wanted, travels))| *wanted && *travels)
            .map(|((&sent, &arrived), _)| (sent, arrived))
            .collect()
    }

    /// Every one of these points is the same, bit for bit.
    #[track_caller]
    pub fn expect_exact(&self, of: &[bool]) {
        let points = self.points(of);
        assert!(!points.is_empty(), "no such point");
        let changed: Vec<_> = points
            .iter()
            .filter(|(sent, arrived)| sent.to_bits() != arrived.to_bits())
            .collect();
        let some = &changed[..changed.len().min(4)];
        assert!(
            changed.is_empty(),
            "{} of {} changed, such as {some:?}: {}",
            changed.len(),
            points.len(),
            self.output()
        );
    }

    /// The largest absolute error at these points.
    #[track_caller]
    pub fn largest_error(&self, of: &[bool]) -> f64 {
        let points = self.points(of);
        assert!(!points.is_empty(), "no such point");
        points.into_iter().fold(0.0, |worst, (sent, arrived)| {
            let error = (f64::from(sent) - f64::from(arrived)).abs();
            if error <= worst { worst } else { error }
        })
    }

    /// The mean absolute error at these points.
    pub fn mean_error(&self, of: &[bool]) -> f64 {
        let points = self.points(of);
        let errors = points
            .iter()
            .map(|&(sent, arrived)| (f64::from(sent) - f64::from(arrived)).abs());
        errors.sum::<f64>() / points.len() as f64
    }

    /// The mean of |x − x̂| ÷ |x| over the points that went to another rank.
    pub fn mean_relative_error(&self) -> f64 {
        let points = self.points(&vec![true; self.arrived.sent.len()]);
        let errors = points.iter().map(|&(sent, arrived)| {
            (f64::from(sent) - f64::from(arrived)).abs() / f64::from(sent).abs()
        });
        errors.sum::<f64>() / points.len() as f64
    }
}
