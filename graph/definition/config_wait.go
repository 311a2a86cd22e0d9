package definition

import (
	"fmt"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// wait compiles a wait (spec: definition, 4.9 and 10).
func (x *config) wait() {
	w := &WaitConfig{Kind: WaitKind(x.text("kind"))}
	x.v.node.Wait = w
	x.unfilled(`only duration and until of a wait can be filled in, by wait_templates beside config (extension "templates")`)
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
