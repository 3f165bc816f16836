//! Buffers on a GPU, under MPIs that take their addresses and MPIs that do not. The driver is a stand-in (tests/gpu/fake)
//! whose device memory nobody else can touch, and which runs the real kernels.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::relay::Relay;
use common::{BOTH, Mpi, Run};

/// All-to-alls between all kinds of memory; values may be off by so much.
fn buffers(mpi: Mpi) -> Run {
    Run::new(mpi, "buffers")
        .with_fake_gpu()
        .env("TRANSPRESS_COMMS", "all")
        .env("TRANSPRESS_LAYOUT", "*")
        .env("CHECK_F32", 1e-3)
        .env("CHECK_F64", 1e-3)
        .ranks(3)
        .limit(120)
}

const ENGINES: [&str; 2] = ["collective", "pairwise"];

#[test]
fn an_mpi_that_takes_no_addresses_of_a_gpu() {
    for mpi in BOTH {
        for engine in ENGINES {
            let output = buffers(mpi).env("TRANSPRESS_ENGINE", engine).output();
            assert!(output.stderr.contains("a GPU coded"), "{output}");
            output.passes();
        }
    }
}

#[test]
fn an_mpi_that_takes_addresses_of_a_gpu() {
    for mpi in BOTH {
        for engine in ENGINES {
            let run = buffers(mpi).tool_after("aware-tool");
            let output = run.env("TRANSPRESS_ENGINE", engine).output();
            assert!(output.stderr.contains("a GPU coded"), "{output}");
            output.passes();
        }
    }
}

/// What the device lends may be longer than was asked for, in the host's memory and on the device by different lengths.
#[test]
fn memory_goes_from_one_communicator_to_another() {
    for engine in ENGINES {
        let run = buffers(Mpi::OpenMpi).tool_after("aware-tool");
        let run = run.env("TRANSPRESS_ENGINE", engine).arg("communicators");
        run.output().passes();
    }
}

#[test]
fn the_cpu_codes_what_a_gpu_is_not_to() {
    for engine in ENGINES {
        let run = buffers(Mpi::OpenMpi).env("TRANSPRESS_ENGINE", engine);
        let output = run.env("TRANSPRESS_DEVICE", "cpu").output();
        assert!(!output.stderr.contains("a GPU coded"), "{output}");
        output.passes();
    }
    let others = [
        ("TRANSPRESS_CODEC", "bf16"),
        ("TRANSPRESS_TOLERANCE", "1e-4"),
        ("TRANSPRESS_BITS", "fitted"),
        ("TRANSPRESS_MODE", "auto"),
    ];
    for (variable, value) in others {
        let run = buffers(Mpi::Mpich)
            .env("CHECK_F32", 1e-2)
            .env("CHECK_F64", 1e-2);
        run.env(variable, value).output().passes();
    }
}

#[test]
fn a_gpu_that_fails_is_done_without() {
    for (call, engine) in [
        ("cuLaunchKernel", "collective"),
        ("cuLaunchKernel", "pairwise"),
    ] {
        let run = buffers(Mpi::OpenMpi).env("TRANSPRESS_ENGINE", engine);
        let output = run.env("FAKE_CUDA_FAIL", call).output();
        let complaints = output.complaints();
        let said = complaints
            .iter()
            .filter(|line| line.contains("a GPU failed"));
        assert!(said.count() > 0, "{output}");
        output.passes();
    }
}

const NX: usize = 24;
const NY: usize = 20;
const COUNT: usize = NX * NY * 10;

/// A value by its index.
type Field = fn(usize) -> f64;

fn smooth(i: usize) -> f64 {
    let (x, y, z) = ((i % NX) as f64, (i / NX % NY) as f64, (i / NX / NY) as f64);
    (0.2 * x).sin() * (0.15 * y + 0.01 * z * x).cos() + 1e-3 * ((i * 7919) % 101) as f64
}

/// Fields of different magnitude side by side, complex numbers, and zeros among them.
fn varied(i: usize) -> f64 {
    let magnitude = [1.0, 1e-9, 3e7, 0.0, 1e-2][i / 2 % 5];
    magnitude * smooth(i / 10)
}

#[test]
fn a_gpu_and_the_cpu_send_the_same_bits() {
    let cases: [(&str, f64, Field); 6] = [
        ("*", 16.0, smooth),
        ("*", 1.5, smooth),
        ("24,*", 13.0, smooth),
        ("24,20,*", 8.0, smooth),
        ("2c,5f,*", 11.3, varied),
        ("2c,5f,24,*", 7.0, varied),
    ];
    for (layout, rate, value) in cases {
        let relay = |datatype| {
            Relay::alltoall(Mpi::OpenMpi, 2, datatype, COUNT)
                .env("TRANSPRESS_LAYOUT", layout)
                .env("TRANSPRESS_RATE", rate)
                .env("TRANSPRESS_BITS", "even")
                .env("TRANSPRESS_GUARD", "off")
        };
        let doubles: Vec<f64> = (0..4 * COUNT).map(value).collect();
        let floats: Vec<f32> = doubles.iter().map(|&value| value as f32).collect();
        same_bits(relay("float"), &floats);
        same_bits(relay("double"), &doubles);
    }
}

#[track_caller]
fn same_bits<T: common::relay::Value>(relay: Relay, sent: &[T]) {
    let cpu = relay.send(sent);
    let gpu = relay.on_gpu().send(sent);
    gpu.expect_compressed();
    assert!(gpu.output.stderr.contains("a GPU coded"), "{}", gpu.output);
    let bytes = |values: &[T]| -> Vec<u8> { values.iter().flat_map(|v| v.to_bytes()).collect() };
    assert!(bytes(&cpu.values) == bytes(&gpu.values), "{}", gpu.output);
}

/// What one of some ranks asked of the driver and of MPI, in this order, from its log; under further tools.
fn asked(name: &str, ranks: usize, tools: &[&str]) -> Vec<String> {
    let log = common::gpu::log_file(name);
    let run = buffers(Mpi::OpenMpi)
        .env("TRANSPRESS_ENGINE", "collective")
        .ranks(ranks)
        .tool_after("log-tool");
    let run = tools.iter().fold(run, |run, tool| run.tool_after(tool));
    run.env("FAKE_CUDA_LOG", log.display()).output().passes();
    let lines = common::gpu::read_log(&log);
    let (rank, _) = lines[0].split_once(' ').expect("a process and a call");
    let of_rank = lines.iter().filter_map(|line| line.strip_prefix(rank));
    of_rank.map(|line| line.trim().to_string()).collect()
}

/// The first call of the calls that begin with `name`.
fn first(calls: &[String], name: &str) -> Option<usize> {
    calls.iter().position(|call| call.starts_with(name))
}

/// The bytes of the largest copy.
fn largest_copy(calls: &[String], name: &str) -> usize {
    let copies = calls.iter().filter(|call| call.starts_with(name));
    let bytes = copies.filter_map(|call| call.rsplit_once("bytes=")?.1.parse().ok());
    bytes.max().unwrap_or(0)
}

/// 5000 floats at 16 bits each, as one message.
const PAYLOAD: usize = 10_000;

/// The calls before and after that of MPI in an all-to-all of 5000 floats from device to device.
fn around_mpi(calls: &[String], call: &str) -> (Vec<String>, Vec<String>) {
    let is_ours = |at: &usize| {
        calls[*at].starts_with(call)
            && calls[..*at]
                .iter()
                .rfind(|call| call.starts_with("cuLaunchKernel"))
                .is_some_and(|last| last.contains("sample_f32_1"))
    };
    let at = (0..calls.len()).find(is_ours).expect(call);
    let begun = calls[..at]
        .iter()
        .rposition(|call| call.starts_with("cuEventRecord"));
    let after = &calls[at + 1..];
    let ended = first(after, "cuCtxPopCurrent").expect("the end of the decoding");
    (
        calls[begun.expect("the order after the program")..at].to_vec(),
        after[..ended].to_vec(),
    )
}

#[track_caller]
fn expect_order(calls: &[String], names: &[&str]) {
    let mut at = 0;
    for name in names {
        match first(&calls[at..], name) {
            Some(next) => at += next + 1,
            None => panic!("no {name} where it belongs in {calls:#?}"),
        }
    }
}

#[test]
fn copies_and_launches_come_before_and_after_mpi() {
    let calls = asked("order", 2, &[]);
    let (before, after) = around_mpi(&calls, "PMPI_Alltoallv send=pinned receive=pinned");
    let survey = [
        "cuEventRecord",
        "cuStreamWaitEvent",
        "cuLaunchKernel kernel=survey_f32",
    ];
    let coding = ["cuStreamSynchronize", "cuLaunchKernel kernel=encode_f32_1"];
    let bringing = [
        "cuLaunchKernel kernel=sample_f32_1",
        "cuMemcpyDtoHAsync",
        "cuStreamSynchronize",
    ];
    expect_order(&before, &[&survey[..], &coding, &bringing].concat());
    let decoding = [
        "cuMemcpyHtoDAsync",
        "cuLaunchKernel kernel=decode_f32_1",
        "cuStreamSynchronize",
    ];
    expect_order(&after, &decoding);
    assert_eq!(largest_copy(&before, "cuMemcpyDtoHAsync"), PAYLOAD);
    assert_eq!(largest_copy(&after, "cuMemcpyHtoDAsync"), PAYLOAD);
}

#[test]
fn compressed_bytes_stay_on_the_gpu_where_mpi_takes_them_there() {
    let calls = asked("order-aware", 2, &["aware-tool"]);
    let (before, after) = around_mpi(&calls, "PMPI_Alltoallv send=device receive=device");
    expect_order(
        &before,
        &[
            "cuLaunchKernel kernel=encode_f32_1",
            "cuMemcpyHtoDAsync",
            "cuStreamSynchronize",
        ],
    );
    expect_order(&after, &["cuMemcpyDtoHAsync"]);
    for (calls, copy) in [
        (&before, "cuMemcpyDtoHAsync"),
        (&before, "cuMemcpyHtoDAsync"),
    ] {
        assert!(largest_copy(calls, copy) < PAYLOAD, "{calls:#?}");
    }
    let more = asked("order-of-four", 4, &["aware-tool"]);
    let (before_more, after_more) = around_mpi(&more, "PMPI_Alltoallv send=device receive=device");
    assert_eq!(waits(&before_more), waits(&before));
    assert_eq!(waits(&after_more), waits(&after));
}

/// How often was the GPU waited for?
fn waits(calls: &[String]) -> usize {
    let waits = |call: &&String| call.starts_with("cuStreamSynchronize");
    calls.iter().filter(waits).count()
}
