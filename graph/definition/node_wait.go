package definition

import (
	"fmt"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// WaitKind is one of the three kinds of wait.
type WaitKind string

// The kinds of wait (spec: definition, 4.9).
const (
	WaitDuration WaitKind = "duration"
	WaitUntil    WaitKind = "until"
	WaitSignal   WaitKind = "signal"
)

// WaitConfig is the config of a wait.
type WaitConfig struct {
	Kind WaitKind
	// DurationMS as written in duration_ms (which wins), or parsed from duration.
	DurationMS float64
	// Until as written, and parsed.
	Until   string
	UntilAt time.Time
	// Signal is trimmed.
	Signal string
	// Template gives the duration or the instant from the state, nil where the config has it; see TemplateTime.
	Template *expr.Template
	// Timeout is how long a signal may take, 0 without a limit (the extension on_timeout).
	Timeout time.Duration
	// Keep: the wait takes a signal that came before it, the oldest first (the extension early_signals).
	Keep bool
	// Err is set when the wait cannot begin: an unparsable duration or instant, a blank signal.
	Err error
}

// Duration is the time to wait, rounded down to nanoseconds and bounded to 290 years.
func (w *WaitConfig) Duration() time.Duration { return boundedMilliseconds(w.DurationMS) }

// waitType is a node that waits for a time or a signal.
func waitType() NodeType {
	return NodeType{
		Name: Wait, Output: OutputSignal, Stub: StubSignal, Figure: FigurePause,
		Example: `{"id": "pause", "type": "wait", "config": {"kind": "duration", "duration": "90s"}}`,
		description: "Waits for a duration, for an instant, or for a signal from outside. " +
			"The properties of a signal's payload are combined with the state.",
		config: objectOf("",
			member{"kind", oneOf("the kind of a wait", string(WaitDuration), string(WaitUntil), string(WaitSignal)).
				about("Which of the other fields counts."), true},
			member{"duration_ms", atLeast("duration_ms", 0).about("For duration: milliseconds. Takes precedence over duration."), false},
			member{"duration", filled("duration").
				about("For duration: digits and a unit of ms, s, m or h.", `"90s"`, `"24h"`), false},
			member{"until", filled("until").
				about("For until: RFC 3339 with an offset, or a date (midnight UTC). An instant in the past does not wait.", `"2030-01-31T09:00:00Z"`), false},
			member{"signal", filled("signal").about("For signal: its name, as it is delivered."), false},
		).with(extended{member{"timeout", filled("the timeout of a wait").or(`write a text such as "24h"`).
			about("For signal: how long it may take, for example 24h; no bound if absent. Extension on_timeout."), false}, ExtensionOnTimeout}).
			ruled(
				needsIf{"kind", string(WaitDuration), []string{"duration_ms", "duration"}},
				needsIf{"kind", string(WaitUntil), []string{"until"}},
				needsIf{"kind", string(WaitSignal), []string{"signal"}},
			).about("The duration, the instant or the signal."),
		extended: []extended{onTimeoutMember,
			{member{"wait_templates", waitTemplatesShape, false}, ExtensionTemplates},
			{member{"keep", boolean("keep").called("keep").
				about("true if a wait for a signal also takes a signal that came before the run waited for it, the oldest first. Extension early_signals."), false}, ExtensionEarlySignals},
		},
		Fill:    Fill{Hint: `only duration and until of a wait can be filled in, by wait_templates beside config (extension "templates")`},
		compile: (*config).wait,
	}
}

// wait compiles a wait (spec: definition, 4.9 and 10).
func (x *config) wait() {
	w := &WaitConfig{Kind: WaitKind(x.text("kind"))}
	x.v.node.Wait = w
	reads := map[string]bool{"kind": true}
	switch w.Kind {
	case WaitDuration:
		if ms, ok := x.raw["duration_ms"].(float64); ok {
			w.DurationMS = ms
			reads["duration_ms"] = true
			x.ignored("duration", "duration_ms wins over duration")
			reads["duration"] = true
			break
		}
		reads["duration"] = true
		ms, err := parseMilliseconds(x.text("duration"))
		if err != nil {
			w.Err = err
			x.c.invalidDuration(err, x.json.Get("duration"), x.at.member("duration"), x.v)
		}
		w.DurationMS = ms
	case WaitUntil:
		reads["until"] = true
		x.until(w)
	case WaitSignal:
		reads["signal"] = true
		if w.Signal = expr.TrimSpace(x.text("signal")); w.Signal == "" {
			w.Err = x.err(problem.ConfigBlank, "signal", "the name of the signal is blank")
			x.fatal(problem.ConfigBlank, "signal", "the name of the signal is blank", "")
		}
		reads["timeout"] = true
		if x.json.Get("timeout") != nil {
			x.c.used[ExtensionOnTimeout] = true
		}
		w.Timeout = x.timeout("the signal has all the time it needs")
	}
	for _, m := range x.json.Members {
		if !reads[m.Name] {
			x.c.ignored(m, x.at, x.v, fmt.Sprintf("a wait of kind %q does not read %s", w.Kind, m.Name), "")
		}
	}
}

func (x *config) until(w *WaitConfig) {
	w.Until = x.text("until")
	at, standard, ok := parseInstant(w.Until)
	switch {
	case !ok:
		w.Err = x.err(problem.InstantInvalid, "until", "invalid instant %q", w.Until)
		x.fatal(problem.InstantInvalid, "until", fmt.Sprintf("invalid instant %q", clip(w.Until)), instantHint)
	case !standard:
		x.warn(problem.InstantInvalid, "until",
			fmt.Sprintf("engines may read %q differently; here it is %s", clip(w.Until), at.UTC().Format(time.RFC3339Nano)), instantHint)
	}
	w.UntilAt = at
}
