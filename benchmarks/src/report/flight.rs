//! The part about exact hits over Flight SQL.

use super::{Report, time, verdict};
use crate::chart::{Chart, Scale, Series};
use crate::flight::{Figures, HITS_PER_SECOND_MIN, MEDIAN_MS_MAX};

impl Report {
    pub(crate) fn flight(&mut self, figures: &Figures) {
        let args = &figures.args;
        self.line("## Exact hits over Flight SQL");
        self.line("");
        self.line(&format!(
            "Clients and server in one process on the same processors, over loopback, users logged in; GetFlightInfo and DoGet for \
             each. One client's median must be at most {MEDIAN_MS_MAX} ms: {} {}. {} clients must get at least {HITS_PER_SECOND_MIN} \
             a second: {:.0} {}.",
            time(figures.one.median()),
            verdict(figures.one.median() <= MEDIAN_MS_MAX),
            args.clients,
            figures.hits_per_second,
            verdict(figures.hits_per_second >= HITS_PER_SECOND_MIN),
        ));
        self.line("");
        let many = format!("{} clients for {} s", args.clients, args.seconds);
        let sides = [&figures.here, &figures.one, &figures.many];
        self.chart(
            "",
            &Chart {
                title: "Exact hits over Flight SQL".to_string(),
                unit: "ms",
                scale: Scale::Log,
                groups: vec!["in the process".to_string(), "one client".to_string(), many.clone()],
                series: [50, 99]
                    .map(|percent| {
                        Series::new(&format!("p{percent}"), sides.map(|samples| samples.percentile(percent)))
                    })
                    .into(),
            },
        );
        self.table(
            &["milliseconds", "hits", "p50", "p99"],
            [("in the process", &figures.here), ("one client", &figures.one), (many.as_str(), &figures.many)].map(
                |(name, samples)| {
                    let [p50, p99] = [50, 99].map(|percent| time(samples.percentile(percent)));
                    [name.to_string(), samples.len().to_string(), p50, p99]
                },
            ),
        );
        self.line("");
    }
}
