//! The `transpress` command; see [`transpress::cli`].

fn main() -> std::process::ExitCode {
    transpress::cli::main()
}
