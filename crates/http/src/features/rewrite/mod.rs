//! Rewrite programs: `return`, and what is to come.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Inherited, Load, Result, Template, Value};

use crate::exchange::{Bytes, Exchange, Flow};
use crate::site::Place;

conf::directives! {
    also {
        /// Stops processing and returns the status to the client.
        return(1..=2) in SERVER | IF_IN_SERVER | LOCATION | IF_IN_LOCATION => program;
    }

    in SERVER | LOCATION;

    /// The program.
    program: Option<Program>,
}

/// The directives in their order: a small program.
#[derive(Clone)]
pub struct Program(Vec<Code>);

#[derive(Clone)]
enum Code {
    Return { status: u16, text: Option<Template> },
}

impl Value for Program {
    const ARGS: RangeInclusive<usize> = 0..=usize::MAX;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut program = Self(Vec::new());
        program.repeat(from, load)?;
        Ok(program)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let status = std::str::from_utf8(&from.arg(0).text).ok().and_then(|t| t.parse().ok());
        let status = status.ok_or_else(|| from.error("invalid return code"))?;
        let text = match from.args.get(1) {
            Some(word) => Some(Template::compile(word, from, load)?),
            None => None,
        };
        self.0.push(Code::Return { status, text });
        Ok(())
    }
}

/// Hooks the program into the rewrite phase.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    if conf.program.is_some() {
        let conf = conf.clone();
        place.rewrite(move |x| run(&conf, x));
    }
    Ok(())
}

fn run(conf: &Conf, x: &mut Exchange) -> Flow {
    let program = conf.program.as_ref().expect("installed with a program");
    match &program.0[0] {
        Code::Return { status, text: None } => Flow::Status(*status),
        Code::Return { status, text: Some(text) } => {
            x.reply.status = *status;
            x.set_content_type_of_uri();
            let mut body = x.reply.text();
            text.render(x, &mut body);
            x.reply.set_bytes(Bytes::Owned(body));
            Flow::Done
        }
    }
}
