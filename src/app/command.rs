//! The one table of commands. The keymap, the palette, the hints on every screen, the help screen, `docs/keys.md` and
//! the read-only filter are all made from it.

/// Where a command's keys apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Everywhere, also while text is being typed.
    Anywhere,
    /// On every screen while no text is being typed.
    Screens,
    /// In lists and tables.
    List,
    /// While the policy editor has the keys.
    Editor,
    /// While the policy's editor asks what to replace.
    Replacing,
    /// While a list of words is open in the policy's editor.
    Completing,
    /// While a line of text (a search, an id) is being typed.
    Field,
    /// In a question that waits for an answer.
    Dialog,
    /// In the list of commands.
    Palette,
    /// On the Overview screen.
    Overview,
    /// On the Policy screen.
    Policy,
    /// On the SQL screen.
    Sql,
    /// On the Apply screen.
    Apply,
    /// On the Verify screen.
    Verify,
    /// On the Inspect screen.
    Inspect,
    /// On the Try it screen.
    Try,
    /// On the Bench screen.
    Bench,
    /// On the Activity screen.
    Activity,
    /// On the Targets screen.
    Targets,
}

impl Place {
    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Place::Anywhere => "Everywhere, also while typing",
            Place::Screens => "On every screen, while not typing",
            Place::List => "In lists and tables",
            Place::Editor => "In the policy editor",
            Place::Replacing => "While replacing in the policy",
            Place::Completing => "In the list of words of the policy editor",
            Place::Field => "In a line of text",
            Place::Dialog => "In a question",
            Place::Palette => "In the list of commands",
            Place::Overview => "Overview",
            Place::Policy => "Policy",
            Place::Sql => "SQL",
            Place::Apply => "Apply",
            Place::Verify => "Verify",
            Place::Inspect => "Inspect",
            Place::Try => "Try it",
            Place::Bench => "Bench",
            Place::Activity => "Activity",
            Place::Targets => "Targets",
        }
    }
}

/// What a command changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// Nothing but what is shown.
    Nothing,
    /// The policy's text or a file.
    Text,
    /// The database: refused while the console is read-only.
    Database,
}

impl Changes {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Changes::Nothing => "nothing",
            Changes::Text => "text",
            Changes::Database => "the database",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Which command.
    pub id: Command,
    /// Its stable name, for configuration.
    pub name: &'static str,
    /// What it does, in a few words.
    pub words: &'static str,
    /// One or two words for the last line of the screen.
    pub hint: &'static str,
    /// Its keys; the first is the one shown.
    pub keys: &'static [&'static str],
    /// Where they apply.
    pub place: Place,
    /// What it changes.
    pub changes: Changes,
    /// Asks before it does anything.
    pub dangerous: bool,
}

macro_rules! commands {
    ($( $place:ident { $( $id:ident $name:literal $hint:literal $words:literal [$($key:literal),*] $changes:ident $danger:literal; )* } )*) => {
        /// Every command.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each is described by its row of the table")]
        pub enum Command { $( $( $id, )* )* }

        /// The table, by place.
        pub const TABLE: &[Row] = &[ $( $(
            Row { id: Command::$id, name: $name, words: $words, hint: $hint, keys: &[$($key),*], place: Place::$place, changes: Changes::$changes, dangerous: $danger },
        )* )* ];
    };
}

commands! {
    Screens {
        GoOverview "go.overview" "overview" "go to Overview: is anything wrong?" ["1"] Nothing false;
        GoPolicy "go.policy" "policy" "go to Policy: write it with the compiler beside you" ["2"] Nothing false;
        GoSql "go.sql" "SQL" "go to SQL: what the policy becomes, object by object" ["3"] Nothing false;
        GoApply "go.apply" "apply" "go to Apply: plan, confirm, watch" ["4"] Nothing false;
        GoVerify "go.verify" "verify" "go to Verify: check the stored inheritance in batches" ["5"] Nothing false;
        GoInspect "go.inspect" "inspect" "go to Inspect: who can see this, and why" ["6"] Nothing false;
        GoTry "go.try" "try" "go to Try it: one statement as anyone, rolled back" ["7"] Nothing false;
        GoBench "go.bench" "bench" "go to Bench: reads and moves, live" ["8"] Nothing false;
        GoActivity "go.activity" "activity" "go to Activity: sessions and locks" ["9"] Nothing false;
        GoTargets "go.targets" "targets" "go to Targets: the servers of rowdeck.toml" ["0"] Nothing false;
        Help "help" "help" "show the keys of this screen and of all others" ["?"] Nothing false;
        Quit "quit" "quit" "leave the console" ["q"] Nothing false;
        Palette2 "palette.colon" "commands" "find a command by its words" [":"] Nothing false;
        AllowChanges "session.allow-changes" "allow changes" "allow changes to the database in this session, or forbid them again" ["W"] Nothing true;
        Reconnect "session.reconnect" "reconnect" "connect again now" ["ctrl-r"] Nothing false;
        Export "export" "export" "write the table on the screen to a new file: .csv, .json or .txt" ["E"] Nothing false;
        CopyTable "copy.table" "copy table" "copy the table on the screen (sent to the terminal by OSC 52)" ["Y"] Nothing false;
        NextTheme "theme.next" "theme" "use the next colour theme" ["T"] Nothing false;
        NextScreen2 "go.next.bracket" "next" "go to the next screen" ["]"] Nothing false;
        PreviousScreen2 "go.previous.bracket" "back" "go to the screen before" ["["] Nothing false;
    }
    Anywhere {
        Palette "palette" "commands" "find a command by its words" ["ctrl-p"] Nothing false;
        HelpHere "help.here" "help" "explain the code under the cursor, or show the keys" ["F1"] Nothing false;
        PlanNow "plan" "plan" "plan what applying this policy would do" ["F5"] Nothing false;
        PreviousScreen "go.previous" "back" "go to the screen before" ["F7"] Nothing false;
        NextScreen "go.next" "next" "go to the next screen" ["F8"] Nothing false;
        Redraw "redraw" "redraw" "draw the whole screen again" ["ctrl-l"] Nothing false;
        Suspend "suspend" "suspend" "stop and give the terminal back (fg returns)" ["ctrl-z"] Nothing false;
        Interrupt "interrupt" "quit" "leave the console, or close what is open" ["ctrl-c"] Nothing false;
    }
    List {
        Up "list.up" "up" "one line up" ["up", "k"] Nothing false;
        Down "list.down" "down" "one line down" ["down", "j"] Nothing false;
        PageUp "list.page-up" "page up" "one page up" ["pgup"] Nothing false;
        PageDown "list.page-down" "page down" "one page down" ["pgdn", "space"] Nothing false;
        First "list.first" "first" "to the first line" ["home", "g"] Nothing false;
        Last "list.last" "last" "to the last line" ["end", "G"] Nothing false;
        NextPane "list.next-pane" "next pane" "to the next pane" ["tab"] Nothing false;
        Back "list.back" "back" "close, or go back" ["esc"] Nothing false;
    }
    Overview {
        OverviewOpen "overview.open" "open" "go where the marked line is mended" ["enter"] Nothing false;
        OverviewAgain "overview.again" "again" "read it again now" ["r"] Nothing false;
    }
    Policy {
        Edit "policy.edit" "edit" "put the cursor into the policy" ["enter", "i", "e"] Text false;
        FindHere "policy.find" "find" "find in the policy" ["/"] Nothing false;
        DefinitionHere "policy.definition" "definition" "go to where the name under the cursor is declared" ["d"] Nothing false;
        ReturnHere "policy.return" "back" "go back to where one was before" ["backspace"] Nothing false;
        NextMistake2 "policy.next-mistake" "next mistake" "to the next mistake or lint" ["n"] Nothing false;
        FormatHere "policy.format" "format" "set the text the one way; only space changes" ["f"] Text false;
        SaveScreen "policy.save" "save" "save the policy" ["ctrl-s"] Text false;
        RunTests "policy.tests" "tests" "run the policy's tests on this database (rolled back)" ["t"] Database false;
    }
    Editor {
        LeaveEditor "editor.leave" "leave text" "take the cursor out of the policy, so that letters are commands" ["esc"] Nothing false;
        Save "editor.save" "save" "save the policy" ["ctrl-s"] Text false;
        Undo "editor.undo" "undo" "undo" ["ctrl-u"] Text false;
        Redo "editor.redo" "redo" "redo" ["ctrl-r"] Text false;
        Find "editor.find" "find" "find in the policy" ["ctrl-f"] Nothing false;
        FindNext "editor.find-next" "next" "find the next place" ["F3"] Nothing false;
        Replace "editor.replace" "replace" "find and replace, one by one or all" ["F4"] Text false;
        Complete "editor.complete" "complete" "complete the word before the cursor, or indent" ["tab"] Text false;
        Definition "editor.definition" "definition" "go to where the name under the cursor is declared" ["ctrl-g"] Nothing false;
        Return "editor.return" "back" "go back to where one was before" ["ctrl-o"] Nothing false;
        NextMistake "editor.next-mistake" "next mistake" "to the next mistake or lint" ["F2"] Nothing false;
        Format "editor.format" "format" "set the text the one way; only space changes" ["F6"] Text false;
        Cut "editor.cut" "cut" "cut the selection" ["ctrl-x"] Text false;
        Yank "editor.paste" "paste" "put in what was cut or copied last" ["ctrl-y"] Text false;
        PageUpEditor "editor.page-up" "page up" "one page up" ["pgup"] Nothing false;
        PageDownEditor "editor.page-down" "page down" "one page down" ["pgdn"] Nothing false;
    }
    Replacing {
        ReplaceThis "replace.this" "replace" "replace this one and go to the next" ["y", "enter"] Text false;
        ReplaceSkip "replace.skip" "leave" "leave this one and go to the next" ["n"] Nothing false;
        ReplaceAll "replace.all" "all" "replace this one and all that follow" ["a"] Text false;
        ReplaceStop "replace.stop" "stop" "stop replacing" ["esc", "q"] Nothing false;
    }
    Completing {
        CompleteUp "complete.up" "before" "one line up" ["up"] Nothing false;
        CompleteDown "complete.down" "next" "one line down" ["down"] Nothing false;
        CompleteAccept "complete.accept" "take it" "put the marked word in" ["tab", "enter"] Text false;
        CompleteClose "complete.close" "close" "close the list" ["esc"] Nothing false;
    }
    Sql {
        SqlSearch "sql.search" "search" "search names and text" ["/"] Nothing false;
        SqlCopy "sql.copy" "copy" "copy this statement (sent to the terminal by OSC 52)" ["y"] Nothing false;
        SqlScrollDown "sql.scroll-down" "scroll" "scroll the statement down" ["right", "l"] Nothing false;
        SqlScrollUp "sql.scroll-up" "scroll up" "scroll the statement up" ["left", "h"] Nothing false;
    }
    Apply {
        ApplyNow "apply.run" "apply" "apply the plan (asks first)" ["a", "enter"] Database true;
        MakePlan "apply.plan" "plan" "plan again" ["p"] Nothing false;
        CancelApply "apply.cancel" "cancel" "cancel on the server; the database stays as it was" ["c"] Nothing false;
    }
    Verify {
        VerifyStep "verify.step" "next batch" "check the next batch" ["n"] Nothing false;
        VerifyRun "verify.run" "run" "check batch after batch" ["r"] Nothing false;
        VerifyPause "verify.pause" "pause" "pause after this batch; run or step goes on from here" ["p"] Nothing false;
        VerifyStop "verify.stop" "stop" "stop; the next run starts at the beginning unless resumed" ["s"] Nothing false;
        VerifyResume "verify.resume" "resume" "go on from the last cursor" ["u"] Nothing false;
        VerifyBigger "verify.bigger" "bigger" "bigger batches" ["+"] Nothing false;
        VerifySmaller "verify.smaller" "smaller" "smaller batches" ["-"] Nothing false;
        VerifyRepair "verify.repair" "repair" "repair what was found wrong (asks first)" ["R"] Database true;
    }
    Inspect {
        InspectFind "inspect.find" "find" "find an object by type and id, such as: file 88" ["/", "f"] Nothing false;
        InspectPerson "inspect.person" "person" "look at a person: what they see" ["u"] Nothing false;
        InspectOpen "inspect.open" "open" "open what is under the cursor" ["enter"] Nothing false;
        InspectWhy "inspect.why" "why" "why may this person do that (or why not)" ["w"] Nothing false;
        InspectBrowse "inspect.browse" "browse" "list the types; enter lists the objects of one" ["b"] Nothing false;
        InspectExpand "inspect.expand" "what is in it" "show what lies under the marked object" ["right", "l"] Nothing false;
        InspectCollapse "inspect.collapse" "fold" "hide what lies under it, or go to what it lies under" ["left", "h"] Nothing false;
        InspectMatrix "inspect.matrix" "matrix" "show an object's people and permissions as a matrix, or as lists" ["x"] Nothing false;
        InspectMore "inspect.more" "more" "read the next page" ["m"] Nothing false;
        InspectRefresh "inspect.refresh" "again" "ask the database again" ["r"] Nothing false;
    }
    Try {
        TryWho "try.who" "who" "be somebody: user 31, or nobody" ["u"] Nothing false;
        TryStatement "try.statement" "statement" "type the statement; enter runs it, ctrl-j starts a line" ["enter", "i", "e"] Nothing false;
        TryRun "try.run" "run" "run the statement again, and roll it back" ["r"] Nothing false;
        TryCancel "try.cancel" "cancel" "cancel it on the server" ["c"] Nothing false;
        TryCopy "try.copy" "copy" "copy the result (sent to the terminal by OSC 52)" ["y"] Nothing false;
        TryRight "try.right" "columns" "show the columns to the right" ["right", "l"] Nothing false;
        TryLeft "try.left" "columns" "show the columns to the left" ["left", "h"] Nothing false;
    }
    Bench {
        BenchStart "bench.start" "start" "start reads and tree writes at the rates shown (changes data; asks first)" ["s", "enter"] Database true;
        BenchMove "bench.big-move" "big move" "move a big subtree now" ["m"] Database false;
        BenchStop "bench.stop" "stop" "stop, and take back what it wrote; what was measured stays" ["x"] Nothing false;
        BenchMoreReads "bench.more-reads" "reads +" "more reads a second" ["+"] Nothing false;
        BenchLessReads "bench.less-reads" "reads -" "fewer reads a second" ["-"] Nothing false;
        BenchMoreWrites "bench.more-writes" "writes +" "more tree writes a second" [">"] Nothing false;
        BenchLessWrites "bench.less-writes" "writes -" "fewer tree writes a second" ["<"] Nothing false;
    }
    Activity {
        ActivityHolder "activity.holder" "holder" "go to the session that the marked one waits for" ["enter", "b"] Nothing false;
        ActivityCancel "activity.cancel" "cancel query" "cancel what the marked session runs" ["c"] Database true;
        ActivityEnd "activity.end" "end session" "end the marked session; its transaction is rolled back" ["x"] Database true;
        ActivityAgain "activity.again" "again" "read it again now" ["r"] Nothing false;
    }
    Targets {
        TargetSwitch "targets.switch" "connect" "connect to the marked target instead" ["enter"] Nothing false;
    }
    Field {
        FieldAccept "field.accept" "accept" "use this text" ["enter"] Nothing false;
        FieldCancel "field.cancel" "cancel" "leave without using it" ["esc"] Nothing false;
    }
    Dialog {
        DialogNext "dialog.next" "other answer" "to the next answer" ["tab", "right", "down"] Nothing false;
        DialogPrevious "dialog.previous" "other answer" "to the answer before" ["shift-tab", "left", "up"] Nothing false;
        DialogAccept "dialog.accept" "this answer" "take the marked answer" ["enter"] Nothing false;
        DialogCancel "dialog.cancel" "cancel" "cancel" ["esc", "ctrl-c"] Nothing false;
    }
    Palette {
        PaletteUp "palette.up" "before" "one line up" ["up", "shift-tab"] Nothing false;
        PaletteDown "palette.down" "next" "one line down" ["down", "tab"] Nothing false;
        PaletteRun "palette.run" "run" "run the marked command" ["enter"] Nothing false;
        PaletteClose "palette.close" "close" "close the list" ["esc", "ctrl-c", "ctrl-p"] Nothing false;
    }
}

impl Command {
    /// Its row. Every command has one: both are made by the same lines.
    pub fn row(self) -> &'static Row {
        const NONE: Row = Row {
            id: Command::Redraw,
            name: "",
            words: "",
            hint: "",
            keys: &[],
            place: Place::Anywhere,
            changes: Changes::Nothing,
            dangerous: false,
        };
        TABLE.iter().find(|row| row.id == self).unwrap_or(&NONE)
    }

    /// The key shown for it.
    pub fn key(self) -> &'static str {
        self.row().keys.first().copied().unwrap_or("")
    }
}

/// The order places are listed in, in the help screen and in `docs/keys.md`.
pub const PLACES: &[Place] = &[
    Place::Anywhere,
    Place::Screens,
    Place::List,
    Place::Overview,
    Place::Policy,
    Place::Editor,
    Place::Replacing,
    Place::Completing,
    Place::Sql,
    Place::Apply,
    Place::Verify,
    Place::Inspect,
    Place::Try,
    Place::Bench,
    Place::Activity,
    Place::Targets,
    Place::Field,
    Place::Dialog,
    Place::Palette,
];

/// The text of `docs/keys.md`.
pub fn keys_page() -> String {
    let mut page = String::from(
        "# Keys\n\nGenerated from the command table (`src/app/command.rs`); a test keeps it current.\n\
         `changes` says what a command changes; what changes the database is refused while the console is read-only.\n\
         `asks` marks commands that ask first, with Cancel marked.\n",
    );
    for place in PLACES {
        page.push_str(&format!(
            "\n## {}\n\n| key | command | what it does | changes | asks |\n|---|---|---|---|---|\n",
            place.title()
        ));
        for row in TABLE.iter().filter(|row| row.place == *place) {
            let keys: Vec<String> = row.keys.iter().map(|key| format!("`{}`", key.replace('|', "\\|"))).collect();
            page.push_str(&format!(
                "| {} | {} | {} | {} | {} |\n",
                keys.join(" "),
                row.name,
                row.words,
                row.changes.word(),
                if row.dangerous { "yes" } else { "" }
            ));
        }
    }
    page
}
