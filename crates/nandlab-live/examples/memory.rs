//! Serves memory over NBD until SIGINT or SIGTERM: the server without a simulated drive.
//!
//! `memory SIZE (--unix PATH | --tcp ADDRESS) [--minimum BYTES] [--name NAME] [--pause-us US]`, with SIZE in bytes. Prints the URI when
//! clients can connect, and the report at the end.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use nandlab_base::base::units::Span;
    use nandlab_live::backend::Backend;
    use nandlab_live::memory::Memory;
    use nandlab_live::nbd::Export;
    use nandlab_live::server::{Ended, Listener, Server, Settings};
    use signal_hook::consts::{SIGINT, SIGTERM};

    let mut args = std::env::args().skip(1);
    let size = args.next().ok_or("the size in bytes is missing")?.parse()?;
    let mut memory = Memory::new(size);
    let mut export = Export::new(memory.features());
    let mut settings = Settings::default();
    let mut listeners = Vec::new();
    while let Some(arg) = args.next() {
        let value = args.next().ok_or_else(|| format!("{arg} has no value"))?;
        match arg.as_str() {
            "--unix" => listeners.push(Listener::unix(value.as_ref())?),
            "--tcp" => listeners.push(Listener::tcp(value.parse()?, false)?),
            "--minimum" => export.minimum = value.parse()?,
            "--pause-us" => settings.pause = Span::from_ns(value.parse::<u64>()? * 1000),
            "--name" => export.name = value,
            _ => return Err(format!("unknown argument {arg}").into()),
        }
    }
    let mut server = Server::new(export, listeners, settings)?;
    let stop = server.stop();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        signals.forever().next();
        stop.stop();
    });
    for listener in server.listeners() {
        println!("{}", listener.uri());
    }
    while server.run(&mut memory)? == Ended::Interrupted {}
    println!("{:?}", server.report());
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the server needs Linux");
}
