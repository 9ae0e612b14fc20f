//! `\pset`: how rows look.

use clap::ValueEnum;

use super::nearest;
use crate::exec::Shell;
use crate::failure::{Failure, Result};
use crate::output::Paging;
use crate::print::{Expanded, Format};

/// Names and what they may be.
pub(crate) const OPTIONS: &[(&str, &[&str])] = &[
    ("border", &["0", "1", "2"]),
    ("expanded", &["on", "off", "auto"]),
    ("footer", &["on", "off"]),
    ("format", &["table", "csv", "tsv", "json", "ndjson", "markdown", "html"]),
    ("header", &["on", "off"]),
    ("linestyle", &["unicode", "ascii"]),
    ("null", &[]),
    ("pager", &["on", "off", "always"]),
];

impl Shell {
    /// Sets an option.
    pub(super) fn set_option(&mut self, name: &str, value: &str) -> Result<()> {
        let name = canonical(name)?;
        let view = &mut self.view;
        match name {
            "border" => {
                view.border = value.parse().ok().filter(|border| *border <= 2).ok_or_else(|| wrong(name, value))?
            }
            "expanded" if value == "auto" => view.expanded = Expanded::Auto,
            "expanded" => view.expanded = if switch(name, value)? { Expanded::On } else { Expanded::Off },
            "footer" => view.footer = switch(name, value)?,
            "format" => {
                // psql calls it aligned.
                let value = if value == "aligned" { "table" } else { value };
                view.format = Format::from_str(value, true).map_err(|_| wrong(name, value))?;
            }
            "header" => view.header = switch(name, value)?,
            "linestyle" => {
                view.unicode = match value {
                    "unicode" => true,
                    "ascii" => false,
                    _ => return Err(wrong(name, value)),
                }
            }
            "null" => view.null = Some(value.to_owned()),
            "pager" if value == "always" => self.output.paging = Paging::Always,
            "pager" => self.output.paging = if switch(name, value)? { Paging::Auto } else { Paging::Off },
            _ => {}
        }
        Ok(())
    }

    /// Without a value: the other one of two; `null` goes back to what the format likes.
    pub(super) fn toggle_option(&mut self, name: &str) -> Result<()> {
        let name = canonical(name)?;
        let value = self.option(name);
        match (name, value.as_str()) {
            ("null", _) => self.view.null = None,
            ("expanded" | "footer" | "header" | "pager", "off") => self.set_option(name, "on")?,
            ("expanded" | "footer" | "header" | "pager", _) => self.set_option(name, "off")?,
            _ => {}
        }
        Ok(())
    }

    pub(super) fn tell_option(&self, name: &str) {
        if let Ok(name) = canonical(name) {
            self.terminal.say(&format!("{name} is {}", self.option(name)));
        }
    }

    pub(super) fn tell_options(&self) {
        for (name, _) in OPTIONS {
            self.terminal.say(&format!("{name:<10} {}", self.option(name)));
        }
    }

    fn option(&self, name: &str) -> String {
        let on = |yes: bool| if yes { "on" } else { "off" }.to_owned();
        let view = &self.view;
        match name {
            "border" => view.border.to_string(),
            "expanded" => match view.expanded {
                Expanded::Off => "off".to_owned(),
                Expanded::On => "on".to_owned(),
                Expanded::Auto => "auto".to_owned(),
            },
            "footer" => on(view.footer),
            "format" => view.format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned()),
            "header" => on(view.header),
            "linestyle" => if view.unicode { "unicode" } else { "ascii" }.to_owned(),
            "null" => view.null.as_ref().map_or_else(|| "left to the format".to_owned(), |null| format!("'{null}'")),
            "pager" => match self.output.paging {
                Paging::Off => "off".to_owned(),
                Paging::Auto => "on".to_owned(),
                Paging::Always => "always".to_owned(),
            },
            _ => String::new(),
        }
    }
}

/// `on` or `off` for an option that may be more.
fn switch(name: &str, value: &str) -> Result<bool> {
    boolean(value).map_err(|_| wrong(name, value))
}

/// `on` or `off`, in any of their words.
pub(super) fn boolean(value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err(Failure::new(format!("expected 'on' or 'off', not '{value}'"))),
    }
}

fn canonical(name: &str) -> Result<&'static str> {
    let name = match name {
        "x" => "expanded",
        "tuples_only" | "t" => "header",
        other => other,
    };
    let names = || OPTIONS.iter().map(|(name, _)| *name);
    names().find(|known| *known == name).ok_or_else(|| {
        let failure = Failure::new(format!("unknown option '{name}' of \\pset"));
        match nearest(name, names()) {
            Some(near) => failure.with_hint(format!("did you mean '{near}'?")),
            None => failure.with_hint(format!("options are {}", names().collect::<Vec<_>>().join(", "))),
        }
    })
}

fn wrong(name: &str, value: &str) -> Failure {
    let values = OPTIONS.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, values)| values);
    Failure::new(format!("cannot set {name} to '{value}'")).with_hint(format!("choose one of {}", values.join(", ")))
}
