package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// row is a line before its columns have their widths.
type row struct {
	depth  int
	glyph  Part
	name   string
	kind   string
	took   string
	detail []Part
	// trouble is the number of the part of detail that is an error, from 1 on, or 0. It may take lines of its own.
	trouble int
	passed  bool
}

// maxItems is how many items of a map are shown at once, maxOutput how many characters of an output.
const (
	maxItems  = 6
	maxOutput = 60
)

// rows adds the rows of a sequence. rich shows outputs, too.
type rows struct {
	list []row
	tree *Tree
	now  time.Time
	rich bool
	// going counts open visits.
	going int
}

// maxShown is how many visits of a sequence have rows: more than a terminal has lines.
const maxShown = 300

func (w *rows) sequence(s *Sequence, depth int) {
	visits := s.Visits
	if before := len(visits) - maxShown; before > 0 {
		w.list = append(w.list, row{depth: depth, name: fmt.Sprintf("… %d before", before), passed: true})
		visits = visits[before:]
	}
	for _, v := range visits {
		w.visit(v, depth)
	}
}

// visit adds the row of a visit, and under it those of its open branches, items and subworkflow.
func (w *rows) visit(v *Visit, depth int) {
	open := v.Ended.IsZero()
	r := row{depth: depth, glyph: v.glyph(), name: v.name(), took: w.took(v), passed: !open}
	r.detail, r.trouble = w.detail(v)
	if v.Definition != nil {
		r.kind = string(v.Definition.Type)
	}
	w.list = append(w.list, r)
	if !open {
		return
	}
	for _, b := range v.Branches {
		w.branch(b, depth+1)
	}
	isMap := v.Items != nil && !v.IsItem()
	if isMap {
		w.items(v.Items, depth+1)
	}
	if v.Child != nil {
		w.sequence(&v.Child.Main, depth+1)
	}
	if len(v.Branches) == 0 && v.Child == nil && !isMap {
		w.going++
	}
}

// branch adds the rows of a branch: one for a branch that has come to its end.
func (w *rows) branch(b *Branch, depth int) {
	last := b.Last()
	r := row{depth: depth, glyph: Part{Faint, "·"}, name: b.Name, kind: "branch", passed: true}
	switch {
	case b.Dropped:
		r.glyph, r.detail = Part{Faint, "-"}, []Part{{Faint, "not needed"}}
	case last == nil && b.Empty():
		r.glyph = Part{Good, "✓"}
	case last == nil:
		r.passed = false
	case last.Ended.IsZero():
		r.passed = false
		w.list = append(w.list, r)
		w.sequence(&b.Sequence, depth+1)
		return
	case last.State == Failed && last.Next == "":
		r.glyph, r.took = Part{Bad, "✗"}, Elapsed(b.took())
		r.detail, r.trouble = []Part{{Plain, w.tree.clean(last.Node + ": " + last.Text)}}, 1
	default:
		r.glyph, r.took = Part{Good, "✓"}, Elapsed(b.took())
		if n := len(b.Visits); n > 1 {
			r.detail = []Part{{Faint, fmt.Sprintf("%d nodes", n)}}
		}
	}
	w.list = append(w.list, r)
}

func (w *rows) items(i *Items, depth int) {
	open := slices.SortedFunc(slices.Values(i.Open), func(a, b *Visit) int { return cmp.Compare(a.Number, b.Number) })
	for n, v := range open {
		if n == maxItems {
			w.list = append(w.list, row{depth: depth, name: fmt.Sprintf("… %d more", len(open)-n)})
			w.going += len(open) - n
			return
		}
		w.visit(v, depth)
	}
}

func (v *Visit) name() string {
	if index, of := v.Item(); of != 0 {
		return fmt.Sprintf("item %d", index+1)
	}
	return v.Node
}

func (v *Visit) glyph() Part {
	switch v.State {
	case Succeeded:
		return Part{Good, "✓"}
	case Failed:
		if v.Next != "" {
			return Part{Waiting, "↷"}
		}
		return Part{Bad, "✗"}
	case Dropped:
		return Part{Faint, "-"}
	case Retrying:
		return Part{Waiting, "↻"}
	case Asking, Listening:
		return Part{Waiting, "?"}
	case Sleeping, Resting, Queued:
		return Part{Waiting, "…"}
	}
	if v.host() {
		return Part{Waiting, "?"}
	}
	return Part{Bold, "▸"}
}

// host reports whether the MCP host performs the newest attempt.
func (v *Visit) host() bool {
	a := v.Attempt()
	return a != nil && a.Host
}

// took is the time of a visit. That of an open one is in whole seconds, so that lines change once a second at most.
func (w *rows) took(v *Visit) string {
	switch {
	case v.Definition != nil && v.Definition.Type.Info().Instant && v.Took(w.now) < time.Millisecond:
		return ""
	case v.Ended.IsZero():
		return Seconds(v.Took(w.now))
	}
	return Elapsed(v.Took(w.now))
}

// Seconds is a duration in whole seconds, in days and hours from two days on.
func Seconds(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	if days := d / (24 * time.Hour); days >= 2 {
		return fmt.Sprintf("%dd%dh", days, (d-days*24*time.Hour)/time.Hour)
	}
	return d.String()
}

// detail describes a visit further. trouble is the number of the part that is an error, 0 without one.
func (w *rows) detail(v *Visit) (parts []Part, trouble int) {
	say := func(style Style, format string, args ...any) {
		if text := w.tree.clean(fmt.Sprintf(format, args...)); text != "" {
			parts = append(parts, Part{style, text})
		}
	}
	most := 0
	if v.Definition != nil && v.Definition.Retry != nil {
		most = v.Definition.Retry.MaxAttempts
	}
	attempt := func(n int) string {
		if most >= n {
			return fmt.Sprintf("attempt %d of %d", n, most)
		}
		return fmt.Sprintf("attempt %d", n)
	}
	if v.Compensates != "" {
		say(Waiting, "undoes %s", v.Compensates)
	}
	newest := v.Attempt()
	if newest == nil {
		newest = &Attempt{}
	}
	if newest.Number > 1 && v.State != Retrying {
		say(Plain, "%s", attempt(newest.Number))
	}
	var due time.Time
	if wait := v.Wait(); wait != nil {
		due = wait.Due
	}
	work := newest.Journal.Work
	known := work != nil && work.Known() && v.Ended.IsZero()
	switch v.State {
	case Queued:
		say(Waiting, "waits for its turn")
	case Retrying:
		when := "is due"
		if left := due.Sub(w.now); left > 0 {
			when = "in " + Seconds(left+time.Second-1)
		}
		say(Waiting, "%s %s", attempt(newest.Number+1), when)
		say(Plain, "%s", v.Text)
		trouble = len(parts)
	case Sleeping:
		say(Waiting, "%s", w.left(due))
	case Resting:
		say(Waiting, "rests: %s", w.left(due))
	case Asking:
		say(Waiting, "waits for an answer")
		say(Plain, "%s", v.Text)
	case Listening:
		say(Waiting, "waits for the signal %q", v.Text)
	case Failed:
		say(Plain, "%s", v.Text)
		trouble = len(parts)
		if v.Next != "" {
			say(Waiting, "continues at %s", v.Next)
		}
	case Dropped:
		say(Faint, "stopped")
	case Working:
		switch {
		case newest.Host:
			say(Waiting, "waits for the host to perform it")
		case known:
			say(Plain, "%s: %s", work.Name(), work.Text())
		case newest.AgentID != "":
			say(Plain, "at agent %s", newest.AgentID)
		}
	}
	if known {
		say(Faint, "%s", work.Spent())
	} else if n := newest.Journal.Count; n > 0 {
		text := fmt.Sprintf("%d %s", n, plural(n, "step"))
		if v.State == Working {
			text += ", last " + newest.Journal.newest
		}
		say(Plain, "%s", text)
	}
	w.within(v, say)
	var used sums
	used.add(v)
	if used.counted {
		say(Faint, "%s", used.text())
	}
	if v.Next != "" && v.State == Succeeded {
		say(Plain, "→ %s", v.Next)
	}
	if w.rich && v.State == Succeeded && v.Items == nil && v.Child == nil {
		say(Faint, "%s", cut(v.Output, maxOutput))
	}
	return parts, trouble
}

// within describes the progress of branches, items and a subworkflow.
func (w *rows) within(v *Visit, say func(Style, string, ...any)) {
	if n := len(v.Branches); n > 0 && v.State != Failed {
		ended := 0
		for _, b := range v.Branches {
			if b.Done() {
				ended++
			}
		}
		say(Plain, "%d of %d branches", ended, n)
	}
	if i := v.Items; i != nil && i.Owner == v {
		if done := i.Done + i.Failed; i.Total == unknownTotal {
			say(Plain, "%d items", done)
		} else {
			say(Plain, "%d of %d items", done, i.Total)
		}
		if i.Failed > 0 {
			say(Bad, "%d failed", i.Failed)
		}
	}
	if v.Child != nil {
		say(Plain, "%s", v.Child.Name)
	}
}

// left describes the time that is left, and from an hour on when it ends.
func (w *rows) left(until time.Time) string {
	switch left := until.Sub(w.now); {
	case left <= 0:
		return "is due"
	case left < time.Hour:
		return Seconds(left+time.Second-1) + " left"
	default:
		return fmt.Sprintf("until %s, %s left", until.UTC().Format("2006-01-02 15:04Z"), Seconds(left))
	}
}

// header is the first line: the run.
func (t *Tree) header() Line {
	r := t.root
	name := r.Name
	if r.Title != "" {
		name = r.Title + "  " + name
	}
	line := Line{Parts: []Part{{Bold, t.clean(name)}, {Faint, "  " + t.clean(r.ID)}}}
	switch r.Status {
	case "completed":
		line.Parts = append(line.Parts, Part{Good, "  " + r.Status})
	case "failed":
		line.Parts = append(line.Parts, Part{Bad, "  " + r.Status})
	case "cancelled":
		line.Parts = append(line.Parts, Part{Waiting, "  " + r.Status})
	}
	return line
}

// totals is the last line: the sums of the run and its subworkflows.
func (t *Tree) totals(now time.Time, going int) Line {
	var used sums
	for _, r := range t.runs {
		for _, v := range r.Visits {
			used.add(v)
		}
	}
	took := Seconds(now.Sub(t.root.Began))
	if !t.root.Ended.IsZero() {
		took = Elapsed(t.root.Ended.Sub(t.root.Began))
	}
	facts := []string{fmt.Sprintf("%d done", used.done)}
	if t.root.Ended.IsZero() {
		facts = append(facts, fmt.Sprintf("%d under way", going))
	}
	if used.failed > 0 {
		facts = append(facts, fmt.Sprintf("%d failed %s", used.failed, plural(used.failed, "attempt")))
	}
	if used.counted {
		facts = append(facts, used.text())
	}
	if n := len(t.runs) - 1; n > 0 {
		facts = append(facts, fmt.Sprintf("%d %s", n, plural(n, "subworkflow")))
	}
	return Line{Parts: []Part{{Faint, took + "  " + strings.Join(facts, ", ")}}}
}

// sums add visits up: those that succeeded, failed attempts, tokens, and millionths of a dollar.
type sums struct {
	done, failed    int
	in, out, micros int64
	counted         bool
}

func (s *sums) add(v *Visit) {
	if v.State == Succeeded && !v.IsItem() {
		s.done++
	}
	for _, a := range v.Attempts {
		switch a.Outcome {
		case Failure, Retried, SentBack:
			s.failed++
		}
		if in, out, ok := a.Usage.Tokens(); ok {
			s.in, s.out, s.counted = s.in+in, s.out+out, true
		}
		s.micros += a.Usage.CostMicros()
	}
}

func (s *sums) text() string {
	text := fmt.Sprintf("%d+%d tokens", s.in, s.out)
	if s.micros > 0 {
		text += ", " + USD(s.micros)
	}
	return text
}

// Elapsed formats a duration in a few characters.
func Elapsed(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return Seconds(d.Round(time.Second))
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
