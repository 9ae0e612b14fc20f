//! The statement that makes a report: what is left out is what it would be anyway.

use nectarine_catalog::{CatchUp, Concurrency, Report, ReportOutput};

/// The statement that makes a report.
pub(crate) fn definition(report: &Report) -> String {
    let spec = &report.spec;
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let mut lines = vec![format!("CREATE REPORT {}", ident(&report.name))];
    lines.push(format!("SCHEDULE {} TIME ZONE {}", quoted(&spec.schedule), quoted(&spec.time_zone)));
    lines.push(match &spec.output {
        ReportOutput::File(pattern) => format!("OUTPUT {}", quoted(pattern)),
        ReportOutput::Table(table) => format!("OUTPUT TABLE {}.{}", ident(&table.schema), ident(&table.name)),
    });
    if let Some(title) = &spec.title {
        lines.push(format!("TITLE {}", quoted(title)));
    }
    if let Some(chart) = &spec.chart {
        lines.push(format!("CHART {}", chart.to_ascii_uppercase()));
    }
    if spec.retries > 0 {
        lines.push(format!("RETRIES {} BACKOFF '{} seconds'", spec.retries, spec.backoff_s));
    }
    if spec.timeout_s > 0 {
        lines.push(format!("TIMEOUT '{} seconds'", spec.timeout_s));
    }
    match spec.catch_up {
        CatchUp::None => lines.push("CATCH UP NONE".to_string()),
        CatchUp::All => lines.push("CATCH UP ALL".to_string()),
        CatchUp::Last => {}
    }
    match spec.concurrency {
        Concurrency::Skip => lines.push("CONCURRENCY SKIP".to_string()),
        Concurrency::Allow => lines.push("CONCURRENCY ALLOW".to_string()),
        Concurrency::Queue => {}
    }
    if !spec.depends_on.is_empty() {
        let names: Vec<String> = spec.depends_on.iter().map(|name| ident(name)).collect();
        lines.push(format!("DEPENDS ON {}", names.join(", ")));
    }
    if !spec.expect.is_empty() {
        lines.push(format!("EXPECT {}", spec.expect.join(", ")));
    }
    if let Some(hook) = &spec.hook {
        lines.push(format!("HOOK {}", quoted(hook)));
    }
    lines.push(match spec.statements.as_slice() {
        [query] => format!("AS {query}"),
        several => format!("AS $$\n{}\n$$", several.join(";\n")),
    });
    lines.join("\n")
}

/// Quoted only where it must be.
fn ident(word: &str) -> String {
    let is_plain = word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && word.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    match is_plain {
        true => word.to_string(),
        false => format!("\"{}\"", word.replace('"', "\"\"")),
    }
}
