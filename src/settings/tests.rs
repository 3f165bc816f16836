use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::*;

/// The settings and the lines for the user that `NAME=value` pairs make; names without the prefix.
fn parse(vars: &[(&str, &str)]) -> (Settings, Vec<String>) {
    let vars = vars
        .iter()
        .map(|(name, value)| (format!("TRANSPRESS_{name}").into(), value.into()));
    let (settings, problems) = Settings::parse(vars);
    (settings, problems.iter().map(Problem::to_string).collect())
}

/// The settings of one variable that must be accepted.
fn good(name: &str, value: &str) -> Settings {
    let (settings, problems) = parse(&[(name, value)]);
    assert_eq!(problems, Vec::<String>::new());
    assert!(settings.valid);
    settings
}

/// The problem with one variable that must be refused, behind the `NAME=value: `.
fn bad(name: &str, value: &str) -> String {
    let (settings, problems) = parse(&[(name, value)]);
    assert_eq!(problems.len(), 1, "{name}={value}: {problems:?}");
    assert!(!settings.enabled && !settings.valid);
    let defaults = Settings {
        enabled: false,
        valid: false,
        ..parse(&[]).0
    };
    assert_eq!(settings, defaults, "{name}={value} left something behind");
    let prefix = format!("TRANSPRESS_{name}={}: ", value.trim());
    problems[0]
        .strip_prefix(&prefix)
        .unwrap_or_else(|| panic!("{} does not begin with {prefix}", problems[0]))
        .into()
}

/// Refused with nothing but what the table says is accepted.
fn not_accepted(name: &str, value: &str) {
    let accepted = VARIABLES
        .iter()
        .find(|known| known.name == format!("TRANSPRESS_{name}"))
        .unwrap()
        .accepted;
    assert_eq!(bad(name, value), format!("accepted is {accepted}"));
}

fn not_yet(name: &str, value: &str) {
    let line = bad(name, value);
    assert!(
        line.starts_with("not yet available; accepted is "),
        "{line}"
    );
}

fn name(text: &str) -> Selector {
    Selector::Name(text.into())
}

#[test]
fn defaults() {
    let (settings, problems) = parse(&[]);
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(
        settings,
        Settings {
            enabled: true,
            valid: true,
            comms: Comms::Registered,
            codec: Codec::Zfp,
            rate: PerComm::all(16.0),
            tolerance: None,
            bytes: PerComm::all(None),
            layouts: vec![],
            bits: None,
            guard: Some(1e-2),
            min_bytes: 4096,
            on_node: OnNode::Auto,
            mode: Mode::On,
            engine: Engine::Auto,
            device: Device::Auto,
            gpu_aware: GpuAware::Auto,
            threads: 1,
            report: Report::Stderr,
            log: LevelFilter::WARN,
        }
    );
}

#[test]
fn every_default_of_the_table_is_accepted() {
    for variable in VARIABLES {
        if let Reader::Library(read) = variable.reader {
            let result = read(&mut Settings::blank(), variable.default);
            assert!(result.is_ok(), "{}: {result:?}", variable.name);
        }
    }
}

#[test]
fn empty_and_blank_values_are_the_default() {
    for variable in VARIABLES {
        for blank in ["", "  ", "\t\n"] {
            let pair = (variable.name.into(), blank.into());
            let (settings, problems) = Settings::parse([pair]);
            assert_eq!(problems, [], "{}", variable.name);
            assert_eq!(settings, parse(&[]).0, "{}", variable.name);
        }
    }
}

#[test]
fn values_are_trimmed() {
    assert_eq!(good("CODEC", " fp16\n").codec, Codec::Fp16);
}

#[test]
fn variables_of_others_are_none_of_ours() {
    let vars = [("HOME", "/"), ("TRANSPRESS", "x"), ("transpress_rate", "x")];
    let (settings, problems) =
        Settings::parse(vars.map(|(name, value)| (name.into(), value.into())));
    assert_eq!((problems.len(), settings.enabled), (0, true));
}

#[test]
fn the_first_of_a_repeated_variable_counts() {
    let (settings, _) = parse(&[("CODEC", "fp16"), ("CODEC", "bf16")]);
    assert_eq!(settings.codec, Codec::Fp16);
}

#[test]
fn comms() {
    assert_eq!(good("COMMS", "all").comms, Comms::All);
    assert_eq!(good("COMMS", "registered").comms, Comms::Registered);
    let list = |value| match good("COMMS", value).comms {
        Comms::Listed(list) => list,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        list("rows, columns of A;#2,"),
        [name("rows"), name("columns of A"), Selector::Number(2)]
    );
    assert_eq!(list("a=b"), [name("a=b")]);
    assert_eq!(list("MPI_COMM_WORLD"), [name("MPI_COMM_WORLD")]);
    not_accepted("COMMS", ";,");
    assert!(bad("COMMS", "rows,all").starts_with("cannot use \"all\"; accepted is registered"));
    for number in ["#", "#x", "#-1", "#+1", "#99999999999999999999999"] {
        not_accepted("COMMS", number);
    }
}

#[test]
fn codec() {
    for (text, codec) in [
        ("zfp", Codec::Zfp),
        ("fp16", Codec::Fp16),
        ("bf16", Codec::Bf16),
        ("lossless", Codec::Lossless),
        ("off", Codec::Off),
    ] {
        let settings = good("CODEC", text);
        assert_eq!((settings.codec, codec.as_str()), (codec, text));
        assert_eq!(settings.enabled, codec != Codec::Off);
    }
    not_accepted("CODEC", "ZFP");
    not_accepted("CODEC", "gzip");
}

#[test]
fn rate() {
    let rate = |value| *good("RATE", value).rate.get("", 0);
    assert_eq!(rate("1"), 1.0);
    assert_eq!(rate("64"), 64.0);
    assert_eq!(rate("9.5"), 9.5);
    for value in [
        "fast", "0.99", "64.01", "-8", "nan", "inf", "1e400", "8 bits", "8,5",
    ] {
        not_accepted("RATE", value);
    }
}

#[test]
fn rate_by_communicator() {
    let rate = good("RATE", "12; rows=8 ;#2=10;my comm = 5;a=b=6;").rate;
    let get = |name, number| *rate.get(name, number);
    assert_eq!(get("else", 1), 12.0);
    assert_eq!(get("rows", 1), 8.0);
    assert_eq!(get("else", 2), 10.0);
    assert_eq!(get("my comm", 7), 5.0);
    assert_eq!(get("a=b", 7), 6.0);
    assert_eq!(get("a", 7), 12.0);
    // Name and number both: the later entry.
    assert_eq!(get("rows", 2), 10.0);
}

#[test]
fn rate_by_communicator_keeps_the_default() {
    let rate = good("RATE", "rows=8").rate;
    assert_eq!((*rate.get("rows", 1), *rate.get("", 2)), (8.0, 16.0));
}

#[test]
fn rate_by_communicator_gone_wrong() {
    for (value, part) in [
        ("16;rows=fast", "rows=fast"),
        ("16;rows=", "rows="),
        ("16;=8", "=8"),
        ("16;8", "8"),
        ("rows=8;rows=9", "rows=9"),
        ("#1=8;#01=9", "#01=9"),
        ("16;#two=8", "#two=8"),
    ] {
        let line = bad("RATE", value);
        assert!(
            line.starts_with(&format!("cannot use \"{part}\"; accepted is ")),
            "{line}"
        );
    }
    not_accepted("RATE", "16,rows=8");
}

#[test]
fn tolerance() {
    assert_eq!(good("TOLERANCE", "1e-3").tolerance, Some(1e-3));
    for value in ["0", "-1", "nan", "inf", "small"] {
        not_accepted("TOLERANCE", value);
    }
}

#[test]
fn engine() {
    for engine in [Engine::Auto, Engine::Collective, Engine::Pairwise] {
        assert_eq!(good("ENGINE", engine.as_str()).engine, engine);
    }
    not_accepted("ENGINE", "ring");
}

#[test]
fn layout() {
    let layouts = good("LAYOUT", "2c,100f,*; 256,128,*;").layouts;
    let expected = ["2c,100f,*", "256,128,*"].map(|text| Layout::parse(text).unwrap());
    assert_eq!(layouts, expected);
    assert!(good("LAYOUT", "auto").layouts.is_empty());
    for value in ["256x128", "0,4", "*,*", "1,2,3,4", "8,,8", "2c,100f,*;?"] {
        assert!(bad("LAYOUT", value).contains("accepted"));
    }
}

#[test]
fn bytes() {
    let bytes = good("BYTES", "off;rows=f32;#3=f64").bytes;
    assert_eq!(*bytes.get("", 1), None);
    assert_eq!(*bytes.get("rows", 1), Some(Item::Float(Element::F32)));
    assert_eq!(*bytes.get("", 3), Some(Item::Float(Element::F64)));
    let bytes = good("BYTES", "f64;rows=off").bytes;
    assert_eq!(*bytes.get("", 1), Some(Item::Float(Element::F64)));
    assert_eq!(*bytes.get("rows", 1), None);
    for value in ["float", "on", "rows=f16"] {
        not_accepted("BYTES", value);
    }
    let (settings, problems) = parse(&[("BYTES", "rows=any"), ("CODEC", "lossless")]);
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(*settings.bytes.get("rows", 1), Some(Item::Word(1)));
    assert!(bad("BYTES", "rows=any").contains("TRANSPRESS_CODEC=lossless"));
    assert!(bad("BYTES", "f32;f64").starts_with("cannot use \"f64\"; accepted is off"));
}

#[test]
fn bits() {
    assert_eq!(good("BITS", "auto").bits, None);
    assert_eq!(good("BITS", "even").bits, Some(BitsPolicy::Even));
    assert_eq!(good("BITS", "fitted").bits, Some(BitsPolicy::Fitted));
    not_accepted("BITS", "16");
}

#[test]
fn min_bytes() {
    assert_eq!(good("MIN_BYTES", "0").min_bytes, 0);
    assert_eq!(good("MIN_BYTES", "1000000").min_bytes, 1_000_000);
    for value in ["-1", "4k", "1e3", "4096.0", "99999999999999999999999"] {
        not_accepted("MIN_BYTES", value);
    }
}

#[test]
fn on_node() {
    for (text, on_node) in [
        ("auto", OnNode::Auto),
        ("raw", OnNode::Raw),
        ("compress", OnNode::Compress),
    ] {
        assert_eq!(good("ON_NODE", text).on_node, on_node);
        assert_eq!(on_node.as_str(), text);
    }
    not_accepted("ON_NODE", "yes");
}

#[test]
fn mode() {
    assert!(good("MODE", "on").enabled);
    let off = good("MODE", "off");
    assert_eq!((off.mode, off.enabled, off.valid), (Mode::Off, false, true));
    not_accepted("MODE", "1");
}

#[test]
fn guard() {
    assert_eq!(good("GUARD", "off").guard, None);
    assert_eq!(good("GUARD", "1e-3").guard, Some(1e-3));
    for value in ["0", "-1", "1", "2", "nan", "on"] {
        bad("GUARD", value);
    }
}

#[test]
fn device() {
    assert_eq!(good("DEVICE", "auto").device, Device::Auto);
    assert_eq!(good("DEVICE", "cpu").device, Device::Cpu);
    assert_eq!(good("DEVICE", "cuda").device, Device::Cuda);
    not_accepted("DEVICE", "gpu");
}

#[test]
fn gpu_aware() {
    assert_eq!(good("GPU_AWARE", "auto").gpu_aware, GpuAware::Auto);
    assert_eq!(good("GPU_AWARE", "yes").gpu_aware, GpuAware::Yes);
    assert_eq!(good("GPU_AWARE", "no").gpu_aware, GpuAware::No);
    not_accepted("GPU_AWARE", "1");
}

#[test]
fn threads() {
    assert_eq!(good("THREADS", "1").threads, 1);
    assert_eq!(good("THREADS", "1024").threads, 1024);
    for value in ["0", "1025", "-1", "two", "1.5"] {
        not_accepted("THREADS", value);
    }
}

#[test]
fn report() {
    for (text, report) in [
        ("off", Report::Off),
        ("stderr", Report::Stderr),
        ("run.txt", Report::File("run.txt".into())),
        ("/tmp/my report", Report::File("/tmp/my report".into())),
        ("./report", Report::File("./report".into())),
        ("run.json", Report::Json("run.json".into())),
        ("out/run.JSON", Report::Json("out/run.JSON".into())),
    ] {
        assert_eq!(good("REPORT", text).report, report);
    }
    not_yet("REPORT", "run.html");
    for value in ["of", "stdout", "no", "out/"] {
        not_accepted("REPORT", value);
    }
}

#[test]
fn log() {
    for (text, level) in [
        ("off", LevelFilter::OFF),
        ("error", LevelFilter::ERROR),
        ("warn", LevelFilter::WARN),
        ("info", LevelFilter::INFO),
        ("debug", LevelFilter::DEBUG),
        ("trace", LevelFilter::TRACE),
    ] {
        assert_eq!(good("LOG", text).log, level);
    }
    for value in ["loud", "3", "WARN", "transpress=debug"] {
        not_accepted("LOG", value);
    }
}

#[test]
fn the_variable_of_the_command_is_known() {
    good("LIBRARY", "/opt/libtranspress.so");
}

#[test]
fn an_unknown_variable_names_the_nearest() {
    assert_eq!(
        bad("RATES", "8"),
        "no such variable; did you mean TRANSPRESS_RATE?"
    );
    assert_eq!(
        bad("MINBYTES", "8"),
        "no such variable; did you mean TRANSPRESS_MIN_BYTES?"
    );
    let known: Vec<_> = VARIABLES.iter().map(|known| known.name).collect();
    assert_eq!(
        bad("COMPRESSION_LEVEL", "9"),
        format!("no such variable; accepted are {}", known.join(", "))
    );
    assert!(bad("", "9").starts_with("no such variable"));
}

#[test]
fn several_problems_come_in_order() {
    let (_, problems) = parse(&[
        ("ZZZZZZZ", ""),
        ("AAAAAAA", ""),
        ("LOG", "x"),
        ("CODEC", "x"),
    ]);
    let names: Vec<_> = problems
        .iter()
        .map(|line| line.split('=').next().unwrap_or_default())
        .collect();
    assert_eq!(
        names,
        [
            "TRANSPRESS_CODEC",
            "TRANSPRESS_LOG",
            "TRANSPRESS_AAAAAAA",
            "TRANSPRESS_ZZZZZZZ"
        ]
    );
}

#[test]
fn bytes_that_are_no_text_are_a_problem() {
    let broken = || OsString::from_vec(b"a\xff".to_vec());
    let (settings, problems) = Settings::parse([("TRANSPRESS_REPORT".into(), broken())]);
    assert!(!settings.enabled);
    assert!(problems[0].to_string().contains("not UTF-8"));

    let name = OsString::from_vec(b"TRANSPRESS_\xff".to_vec());
    let (_, problems) = Settings::parse([(name, broken())]);
    assert!(problems[0].to_string().contains("no such variable"));
}

#[test]
fn a_problem_is_one_line() {
    let (_, problems) = parse(&[("CODEC", "a\nb"), ("LAYOUT", "1,\n\x1b[2J"), ("X\n", "\r")]);
    assert_eq!(problems.len(), 3);
    for line in problems {
        assert!(!line.contains(char::is_control), "{line:?}");
    }
}

#[test]
fn agreement_covers_what_the_table_says() {
    let same: Vec<_> = VARIABLES
        .iter()
        .filter(|known| known.same_on_every_rank && known.name != "TRANSPRESS_COMMS")
        .map(|known| known.name)
        .chain([VALIDITY])
        .collect();
    let agreed: Vec<_> = parse(&[])
        .0
        .agreement("", 0)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(agreed, same);
}

#[test]
fn agreement_sees_values_not_spellings() {
    let settings = |rate| parse(&[("RATE", rate), ("THREADS", "2")]).0;
    let plain = settings("8").agreement("rows", 1);
    assert_eq!(plain, settings(" 8.0;cols=9").agreement("rows", 1));
    assert_eq!(plain, settings("9;rows=8e0").agreement("rows", 1));
    assert_ne!(plain, settings("9;rows=8").agreement("cols", 2));
    assert_ne!(plain, settings("fast").agreement("rows", 1));
}
