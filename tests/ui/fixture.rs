//! A console without a terminal: keys and messages in, a screen and the wanted effects out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use rowdeck::app::effect::Effect;
use rowdeck::app::keymap::keys_strict;
use rowdeck::app::message::{BenchNews, Message};
use rowdeck::app::model::Model;
use rowdeck::app::model::activity::{SessionRow, Sessions};
use rowdeck::app::model::apply::{Plan, PlanStep};
use rowdeck::app::model::inspect::{Holder, Holders, ObjectRef, ObjectView, PersonRow, PersonView, Told, WhyView};
use rowdeck::app::model::link::{Facts, InForce, LockTable};
use rowdeck::app::model::overview::{Attention, Counters, InNumbers, Read, Wait, Weight};
use rowdeck::app::model::policy::{DiskStamp, Finding, Outcome};
use rowdeck::app::model::targets::TargetRow;
use rowdeck::app::model::try_it::{Apart, Tried};
use rowdeck::app::theme::Theme;
use rowdeck::app::update;
use rowdeck::bench::histogram::Summary;
use rowdeck::bench::live::{BigMove, Class, ErrorCount, Kind, Operation, Phase, Second, Slice, Snapshot};
use rowdeck::compiler::diagnostic::Severity;
use rowdeck::compiler::ident::{Ident, QualName};
use rowdeck::compiler::objects::{Emitted, GovernedTable, Lock, LockMode, Object, ObjectKind, Phase as Step};
use rowdeck::db::overview::Index;
use rowdeck::db::progress::{ApplyReport, Progress, VerifyBatch, Wrong};

pub const POLICY: &str = "-- a small policy\napp role app_user\n\ntype user = app.users where {active}\n\n\
type folder = app.folders\n  parent : folder = parent_id\n  owner  : persn = owner_id\n\n  \
can view = owner or (parent.view and {inherit})\n\nrules app.folders\n  select : view\n";

pub struct Console {
    pub model: Model,
    pub theme: Theme,
    pub effects: Vec<Effect>,
}

impl Console {
    pub fn new(width: u16, height: u16) -> Self {
        Console {
            model: Model::new("staging", (width, height)),
            theme: Theme::named("mono").unwrap(),
            effects: Vec::new(),
        }
    }

    /// A console with a policy loaded and a connection that stands.
    pub fn connected(width: u16, height: u16) -> Self {
        let mut console = Console::new(width, height);
        console.send(Message::LinkUp(Box::new(facts())));
        console.load();
        console
    }

    pub fn load(&mut self) {
        let stamp = DiskStamp { bytes: 1, modified: 1 };
        self.send(Message::Loaded { path: PathBuf::from("/p/docs.authz"), result: Ok((POLICY.into(), Some(stamp))) });
    }

    pub fn send(&mut self, message: Message) {
        self.effects.extend(update(&mut self.model, message));
    }

    pub fn keys(&mut self, keys: &str) {
        for key in keys_strict(keys).unwrap() {
            self.send(Message::Key(key));
        }
    }

    /// The compiler's answer for the text as it stands.
    pub fn compiled(&mut self, findings: Vec<Finding>, emitted: Option<Emitted>) {
        let outcome = Outcome {
            revision: self.model.policy.revision,
            findings,
            emitted: emitted.map(Arc::new),
            seconds: 0.0012,
            failure: None,
        };
        self.send(Message::Compiled(Box::new(outcome)));
    }

    pub fn screen(&self) -> String {
        self.screen_at(self.model.size.0, self.model.size.1)
    }

    /// Drawn at any size, whatever the model thinks it is.
    pub fn screen_at(&self, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| rowdeck::views::draw(&self.model, &self.theme, frame)).unwrap();
        shown(terminal.backend().buffer())
    }
}

/// What a person sees: the cell a wide character covers as well is left out.
fn shown(buffer: &ratatui::buffer::Buffer) -> String {
    let area = buffer.area;
    let rows = (area.top()..area.bottom()).map(|y| {
        let mut row = String::new();
        let mut x = area.left();
        while x < area.right() {
            let symbol = buffer.cell((x, y)).unwrap().symbol();
            row.push_str(symbol);
            x += u16::try_from(unicode_width::UnicodeWidthStr::width(symbol)).unwrap().max(1);
        }
        row.trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}

pub fn facts() -> Facts {
    Facts {
        server: "db1:5432".into(),
        database: "app".into(),
        role: "app_owner".into(),
        dangers: vec!["owns tables".into()],
        version: "15.7".into(),
        tls: "TLS verified".into(),
        policy: Some(InForce {
            version: 14,
            name: "docs.authz".into(),
            digest: "8f3a".into(),
            applied: "2 days ago".into(),
        }),
        development: true,
        locks: Some(LockTable { capacity: 6_400, held: 298 }),
    }
}

pub fn mistake() -> Finding {
    Finding {
        code: "AZ201".into(),
        severity: Severity::Error,
        line: 7,
        column: 11,
        end_line: 7,
        end_column: 16,
        message: "unknown type \"persn\"".into(),
        help: Some("did you mean \"person\"?".into()),
        file: None,
    }
}

pub fn lint() -> Finding {
    Finding {
        code: "AZ803".into(),
        severity: Severity::Warning,
        line: 3,
        column: 0,
        end_line: 3,
        end_column: 4,
        message: "org_id may change, nothing checks where it goes".into(),
        help: None,
        file: None,
    }
}

fn object(kind: ObjectKind, name: &str, sql: &str, phase: Step, lock: Option<LockMode>) -> Object {
    let locks = lock.map(|mode| Lock { table: QualName::new("app", "folders"), mode }).into_iter().collect();
    Object { kind, name: name.into(), sql: sql.into(), locks, phase, graph: None }
}

pub fn emitted() -> Emitted {
    Emitted {
        objects: vec![
            object(
                ObjectKind::Table,
                "authz_int.g1_node",
                "CREATE TABLE authz_int.g1_node (\n  id bigint PRIMARY KEY,\n  cluster bigint NOT NULL\n)",
                Step::Tables,
                None,
            ),
            object(
                ObjectKind::Trigger,
                "app.folders: authz_g1_ins",
                "CREATE TRIGGER authz_g1_ins AFTER INSERT ON app.folders",
                Step::Upkeep,
                Some(LockMode::ShareRowExclusive),
            ),
            object(
                ObjectKind::View,
                "authz_gen.folder_view",
                "CREATE VIEW authz_gen.folder_view AS SELECT 1",
                Step::Functions,
                None,
            ),
            object(
                ObjectKind::Policy,
                "app.folders: select",
                "CREATE POLICY authz_select ON app.folders FOR SELECT TO app_user",
                Step::Rules,
                Some(LockMode::AccessExclusive),
            ),
        ],
        graphs: Vec::new(),
        tables: vec![
            GovernedTable {
                table: QualName::new("app", "files"),
                role: Ident::new("app_user"),
                view: None,
                expanded_views: 9,
                views: Vec::new(),
            },
            GovernedTable {
                table: QualName::new("app", "folders"),
                role: Ident::new("app_user"),
                view: None,
                expanded_views: 6,
                views: Vec::new(),
            },
        ],
        digest: "5c1e0000aaaabbbb".into(),
    }
}

pub fn plan(revision: u64) -> Plan {
    let step =
        |what: &str, lock: &str, cost: &str| PlanStep { what: what.into(), lock: lock.into(), cost: cost.into() };
    Plan {
        digest: "5c1e77".into(),
        revision,
        from: Some(14),
        unchanged: false,
        steps: vec![
            step("functions and views", "", "31 objects"),
            step("build graph folder.parent", "SHARE ROW EXCLUSIVE on app.folders", "about 54,000 rows"),
            step("switch rules", "ACCESS EXCLUSIVE on app.files, app.folders", "8 objects"),
        ],
        graphs: vec!["index of folder.parent is built, about 54,000 rows".into()],
        locks: Some((214, 6_102)),
        warnings: vec!["index app.files(folder_id) is missing".into()],
        refusals: Vec::new(),
    }
}

pub fn phase(number: usize, title: &str, locks: &str) -> Message {
    Message::Applying(Progress::Phase { number, of: 4, title: title.into(), locks: locks.into() })
}

pub fn batch() -> Message {
    Message::Applying(Progress::Batch {
        batch: 39,
        of: Some(55),
        rows: 38_720,
        rows_of: Some(54_000),
        rate: 38_720.4,
        left: Some(1.2),
    })
}

pub fn report() -> ApplyReport {
    ApplyReport {
        seconds: 2.4,
        rows_built: 54_593,
        unchanged: false,
        version: 15,
        digest: "5c1e0000".into(),
        objects: 39,
        graphs_built: 1,
        graphs_kept: 1,
        findings: Vec::new(),
    }
}

pub fn wrong() -> Wrong {
    let ids = |ids: &[&str]| Some(ids.iter().map(|id| (*id).to_owned()).collect());
    Wrong {
        graph: "folder.parent{inherit}".into(),
        ty: "folder".into(),
        id: "26881".into(),
        stored: ids(&["90", "12", "3", "1"]),
        expected: ids(&["77", "3", "1"]),
        what: "the stored ancestors are not those of its parents".into(),
    }
}

pub fn checked(cursor: Option<&str>, wrong: Vec<Wrong>) -> Message {
    Message::Verified(Ok(VerifyBatch { cursor: cursor.map(str::to_owned), checked: 1_000, wrong, seconds: 0.025 }))
}

pub fn file_88() -> Told {
    let who = |ty: &str, id: &str, label: &str| Holder {
        who: ObjectRef { ty: ty.into(), id: id.into() },
        label: Some(label.into()),
    };
    Told::Object(ObjectView {
        object: ObjectRef { ty: "file".into(), id: "88".into() },
        label: Some("Q3 plan".into()),
        permissions: vec![
            Holders { permission: "share".into(), who: vec![who("user", "2", "Ann")], cut: false },
            Holders { permission: "edit".into(), who: Vec::new(), cut: false },
            Holders {
                permission: "view".into(),
                who: vec![who("user", "2", "Ann"), who("user", "31", "日本 \u{65}\u{301}")],
                cut: true,
            },
        ],
    })
}

pub fn person_31() -> Told {
    let row = |id: &str, label: &str, permissions: &[&str]| PersonRow {
        id: id.into(),
        label: Some(label.into()),
        permissions: permissions.iter().map(|p| (*p).to_owned()).collect(),
    };
    Told::Person(PersonView {
        person: ObjectRef { ty: "user".into(), id: "31".into() },
        label: Some("Bo".into()),
        ty: "file".into(),
        types: vec!["folder".into(), "file".into()],
        rows: vec![row("88", "Q3 plan", &["edit", "view"]), row("91", "Notes", &["view"])],
        after: Some("91".into()),
    })
}

pub fn why() -> Told {
    Told::Why(WhyView {
        question: "May user 31 view file 88?".into(),
        lines: vec!["yes".into(), "member of team 9".into(), "team 9 edits folder 7 (share 55)".into()],
    })
}

fn summary(n: u64, p95: f64, p99: Option<f64>, max: f64) -> Summary {
    Summary { n, p50: Some(0.8), p95: Some(p95), p99, max: Some(max) }
}

pub fn measured() -> Message {
    let operation = |kind: Kind, done: u64, p99: Option<f64>, failed: u64| Operation {
        kind,
        done,
        denied: 0,
        failed,
        timeouts: 0,
        latency: summary(done, 1.63, p99, 44.0),
        service: Summary::default(),
    };
    let slice =
        |done: u64, p95: f64| Slice { done, failed: 0, missed: 0, latency: summary(done, p95, None, p95 * 2.0) };
    let series = (0..40).map(|second| Second {
        second,
        reads: slice(395 + second % 7, 1.2 + (second % 5) as f64 / 10.0),
        writes: slice(18 + second % 4, if second == 30 { 31.0 } else { 8.8 }),
        big_move: second == 30,
    });
    let error = ErrorCount { count: 3, last: "could not serialize access".into() };
    Message::Bench(BenchNews::Snapshot(Box::new(Snapshot {
        phase: Phase::Running,
        elapsed: 40.2,
        reads_rate: 400.0,
        writes_rate: 20.0,
        series: Arc::new(series.collect()),
        operations: vec![
            operation(Kind::OpenFile, 8_011, Some(2.9), 0),
            operation(Kind::Create, 711, Some(14.2), 3),
            operation(Kind::Move, 70, None, 0),
        ],
        reads: Class { done: 16_000, ..Class::default() },
        writes: Class { done: 781, failed: 3, ..Class::default() },
        big_moves: vec![BigMove {
            at: 30.2,
            folder: 4_102,
            to: Some(7),
            below: 17_982,
            milliseconds: Some(61.3),
            error: None,
            others: summary(3, 31.0, None, 31.0),
        }],
        errors: [("40001".to_owned(), error)].into(),
        connections: 24,
        note: None,
    })))
}

pub fn clock(seconds: u64) -> Message {
    Message::Clock(Duration::from_secs(seconds))
}

fn reading(at: f64, rows_written: i64) -> Message {
    let attention = |weight, words: &str, help: &str| Attention { weight, words: words.into(), help: help.into() };
    let read = Read {
        governed: 2,
        rows: 420_000,
        index: Index { bytes: 4_100_000, objects: 54_593, clusters: 3_937 },
        waits: vec![Wait {
            pid: 4711,
            seconds: 3.2,
            waits_for: "app.folders (ShareRowExclusiveLock)".into(),
            holders: vec!["4602 (ann, idle in transaction 240 s)".into()],
        }],
        attention: vec![
            attention(Weight::Wrong, "partition app.readings_2031_02 is open", "revoke the app role's rights on it"),
            attention(Weight::Look, "pid 4602 is idle in a transaction for 00:06:12", "it keeps its locks"),
        ],
        counters: Counters {
            rows_written,
            index_written: rows_written * 3,
            committed: rows_written,
            rolled_back: rows_written / 10,
            at,
        },
        sees_others: true,
    };
    let numbers = InNumbers { types: 7, permissions: 24, tables: 2, most_views: Some(("app.files".into(), 9)) };
    Message::Overview(Ok((Box::new(read), Some(numbers))))
}

pub fn overview() -> Message {
    reading(100.0, 1_000)
}

/// A minute of readings.
pub fn overviews() -> impl Iterator<Item = Message> {
    (0..30).map(|n| reading(100.0 + 2.0 * f64::from(n), 1_000 + i64::from(n * n)))
}

pub fn sessions() -> Message {
    let row = |pid: i32, role: &str, state: &str, query: &str| SessionRow {
        pid,
        started: 1.5,
        role: role.into(),
        application: "psql".into(),
        client: "10.0.0.7".into(),
        state: state.into(),
        transaction: Some(372.0),
        since: Some(240.0),
        query: query.into(),
        ..SessionRow::default()
    };
    let waiting = SessionRow {
        blocked_by: vec![4602],
        waits_for: Some("app.folders (ShareRowExclusiveLock)".into()),
        since: Some(3.2),
        ..row(4711, "app_user", "active", "UPDATE app.folders SET parent_id = 3\n WHERE id = 7")
    };
    let hidden = SessionRow { hidden: true, since: None, ..row(4800, "postgres", "", "") };
    let rows = vec![waiting, row(4602, "ann", "idle in transaction", "LOCK TABLE app.folders"), hidden];
    Message::Sessions(Ok(Box::new(Sessions { rows, cut: false, locks: None })))
}

pub fn tried(asked: u64) -> Message {
    let cell = |text: &str| Some(text.to_owned());
    let tried = Tried {
        columns: vec!["id".into(), "name".into(), "body".into()],
        rows: vec![
            vec![cell("88"), cell("Q3 plan"), None],
            vec![cell("91"), cell("日本 \u{202e}x"), cell("a\nlong one")],
        ],
        touched: 2,
        seconds: 0.012,
        ..Tried::default()
    };
    Message::Tried { asked, result: Ok(Box::new(tried)) }
}

pub fn not_allowed(asked: u64) -> Message {
    let rules = vec!["\"update : edit\" of rules app.files".to_owned()];
    let apart = Some(Apart::NotAllowed { rows: vec!["88".into()], rules });
    Message::Tried { asked, result: Ok(Box::new(Tried { apart, seconds: 0.004, ..Tried::default() })) }
}

pub fn targets() -> Vec<TargetRow> {
    let row = |name: &str, place: Result<&str, &str>, production: bool| TargetRow {
        name: name.into(),
        place: place.map(str::to_owned).map_err(str::to_owned),
        production,
        read_only: production,
        tls: "TLS, chain and host verified".into(),
    };
    vec![
        row("laptop", Err("target \"laptop\" takes its URL from DOCS_URL, which is not set"), false),
        row("prod-eu", Ok("app_owner@db1:5432/app"), true),
        row("staging", Ok("app_owner@db7:5432/app"), false),
    ]
}
