package runtree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/agentview"
	"github.com/workflows-engine/workflows-engine/internal/picture"
)

// row is a line before its columns have their widths.
type row struct {
	depth  int
	glyph  Part
	name   string
	kind   string
	took   string
	detail []Part
	// trouble is the number of the part of detail that is an error, from 1 on; 0 for none. It may take lines of its own.
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
	// going counts what goes on or waits.
	going int
}

func (w *rows) sequence(s *sequence, depth int) {
	if s.forgotten > 0 {
		w.list = append(w.list, row{depth: depth, name: fmt.Sprintf("… %d before", s.forgotten), passed: true})
	}
	for _, v := range s.visits {
		w.visit(v, depth)
	}
}

// visit adds the row of a visit, and under it what goes on within.
func (w *rows) visit(v *Visit, depth int) {
	open := v.Ended.IsZero()
	r := row{depth: depth, glyph: v.glyph(), name: v.name(), took: w.took(v), passed: !open}
	r.detail, r.trouble = w.detail(v)
	if v.node != nil {
		r.kind = string(v.node.Type)
	}
	w.list = append(w.list, r)
	if !open {
		return
	}
	for _, b := range v.branches {
		w.branch(v, b, depth+1)
	}
	if i := v.items; i != nil && i.owner == v {
		w.items(i, depth+1)
	}
	if v.child != nil {
		w.sequence(&v.child.main, depth+1)
	}
	if len(v.branches) == 0 && v.child == nil && (v.items == nil || v.items.owner != v) {
		w.going++
	}
}

// branch adds the rows of a branch: one for a branch that has come to its end.
func (w *rows) branch(block *Visit, b *branch, depth int) {
	last := b.last()
	r := row{depth: depth, glyph: Part{Faint, "·"}, name: b.name, kind: "branch", passed: true}
	switch {
	case b.state == drops:
		r.glyph, r.detail = Part{Faint, "-"}, []Part{{Faint, "not needed"}}
	case last == nil && b.entry == nextOf(block):
		r.glyph = Part{Good, "✓"}
	case last == nil:
		r.passed = false
	case last.Ended.IsZero():
		r.passed = false
		w.list = append(w.list, r)
		w.sequence(&b.sequence, depth+1)
		return
	case last.state == fails && last.Chosen == "":
		r.glyph, r.took = Part{Bad, "✗"}, picture.Elapsed(last.Ended.Sub(b.visits[0].Began))
		r.detail, r.trouble = []Part{{Plain, w.tree.clean(last.Node + ": " + last.text)}}, 1
	default:
		r.glyph, r.took = Part{Good, "✓"}, picture.Elapsed(last.Ended.Sub(b.visits[0].Began))
		if n := len(b.visits) + b.forgotten; n > 1 {
			r.detail = []Part{{Faint, fmt.Sprintf("%d nodes", n)}}
		}
	}
	w.list = append(w.list, r)
}

func (w *rows) items(i *items, depth int) {
	open := slices.SortedFunc(slices.Values(i.open), func(a, b *Visit) int { return cmp.Compare(a.Number, b.Number) })
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
	if index, of := v.Item(); of > 0 {
		return fmt.Sprintf("item %d", index+1)
	}
	return v.Node
}

func (v *Visit) glyph() Part {
	switch v.state {
	case succeeds:
		return Part{Good, "✓"}
	case fails:
		if v.Chosen != "" {
			return Part{Waiting, "↷"}
		}
		return Part{Bad, "✗"}
	case drops:
		return Part{Faint, "-"}
	case retries:
		return Part{Waiting, "↻"}
	case asks, listens:
		return Part{Waiting, "?"}
	case timed, rests, queued:
		return Part{Waiting, "…"}
	}
	if v.host {
		return Part{Waiting, "?"}
	}
	return Part{Bold, "▸"}
}

// took is how long a visit has taken: of what goes on, in whole seconds, so that lines change once a second at most.
func (w *rows) took(v *Visit) string {
	switch {
	case v.node != nil && instant(v.node) && v.Took(w.now) < time.Millisecond:
		return ""
	case v.Ended.IsZero():
		return Seconds(v.Took(w.now))
	}
	return picture.Elapsed(v.Took(w.now))
}

// Seconds is a duration in whole seconds, in days and hours from two days on.
func Seconds(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	if days := d / (24 * time.Hour); days >= 2 {
		return fmt.Sprintf("%dd%dh", days, (d-days*24*time.Hour)/time.Hour)
	}
	return d.String()
}

// detail is what else there is to say of a visit, and which part of it is an error.
func (w *rows) detail(v *Visit) (parts []Part, trouble int) {
	say := func(style Style, format string, args ...any) {
		if text := w.tree.clean(fmt.Sprintf(format, args...)); text != "" {
			parts = append(parts, Part{style, text})
		}
	}
	most := 0
	if v.node != nil && v.node.Retry != nil {
		most = v.node.Retry.MaxAttempts
	}
	attempt := func(n int) string {
		if most >= n {
			return fmt.Sprintf("attempt %d of %d", n, most)
		}
		return fmt.Sprintf("attempt %d", n)
	}
	if v.undoes != "" {
		say(Waiting, "undoes %s", v.undoes)
	}
	if v.Attempt > 1 && v.state != retries {
		say(Plain, "%s", attempt(v.Attempt))
	}
	switch v.state {
	case queued:
		say(Waiting, "waits for its turn")
	case retries:
		when := "is due"
		if left := v.due.Sub(w.now); left > 0 {
			when = "in " + Seconds(left+time.Second-1)
		}
		say(Waiting, "%s %s", attempt(v.Attempt+1), when)
		say(Plain, "%s", v.text)
		trouble = len(parts)
	case timed:
		say(Waiting, "%s", w.left(v.due))
	case rests:
		say(Waiting, "rests: %s", w.left(v.due))
	case asks:
		say(Waiting, "waits for an answer")
		say(Plain, "%s", v.text)
	case listens:
		say(Waiting, "waits for the signal %q", v.text)
	case fails:
		say(Plain, "%s", v.text)
		trouble = len(parts)
		if v.Chosen != "" {
			say(Waiting, "goes on at %s", v.Chosen)
		}
	case drops:
		say(Faint, "stopped")
	case works:
		if v.host {
			say(Waiting, "waits for the host to perform it")
		} else if v.atWork() {
			say(Plain, "%s: %s", v.work.Name(), v.work.Text())
		} else if v.agent != "" {
			say(Plain, "at agent %s", v.agent)
		}
	}
	if v.work != nil && v.work.Known() {
		say(Faint, "%s", v.work.Spent())
	} else if v.steps > 0 {
		say(Plain, "%s", v.stepsText())
	}
	w.within(v, say)
	if v.counted {
		say(Faint, "%d+%d tokens%s", v.in, v.out, cost(v.micros))
	}
	if v.Chosen != "" && v.state == succeeds {
		say(Plain, "→ %s", v.Chosen)
	}
	if w.rich && v.state == succeeds && v.items == nil && v.child == nil {
		say(Faint, "%s", Line{Parts: []Part{{Text: v.made}}}.cut(maxOutput).Text())
	}
	return parts, trouble
}

// atWork reports whether the visit is of an agent whose steps say what it does.
func (v *Visit) atWork() bool { return v.work != nil && v.work.Known() }

// stepsText is how many steps the newest attempt has recorded, and while it works the last one.
func (v *Visit) stepsText() string {
	text := fmt.Sprintf("%d %s", v.steps, plural(v.steps, "step"))
	if v.state == works {
		text += ", last " + v.step
	}
	return text
}

// within says how far branches, items and a subworkflow have come.
func (w *rows) within(v *Visit, say func(Style, string, ...any)) {
	if n := len(v.branches); n > 0 && v.state != fails {
		ended := 0
		for _, b := range v.branches {
			if last := b.last(); b.state != drops && (last != nil && last.state == succeeds || last == nil && b.entry == nextOf(v)) {
				ended++
			}
		}
		say(Plain, "%d of %d branches", ended, n)
	}
	if i := v.items; i != nil && i.owner == v {
		say(Plain, "%d of %d items", i.done+i.failed, i.total)
		if i.failed > 0 {
			say(Bad, "%d failed", i.failed)
		}
	}
	if v.child != nil {
		say(Plain, "%s", v.child.name)
	}
}

// left says how long there is until a time, and from an hour on when that is.
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

// header is the first line: what runs.
func (t *Tree) header() Line {
	r := t.root
	name := r.name
	if r.title != "" {
		name = r.title + "  " + name
	}
	line := Line{Parts: []Part{{Bold, t.clean(name)}, {Faint, "  " + t.clean(r.id)}}}
	switch r.status {
	case "completed":
		line.Parts = append(line.Parts, Part{Good, "  " + r.status})
	case "failed":
		line.Parts = append(line.Parts, Part{Bad, "  " + r.status})
	case "cancelled":
		line.Parts = append(line.Parts, Part{Waiting, "  " + r.status})
	}
	return line
}

// totals is the last line: what the run and its subworkflows come to.
func (t *Tree) totals(now time.Time, going int) Line {
	done, failed, counted := 0, 0, false
	var in, out, micros int64
	for _, r := range t.runs {
		micros += r.micros
		done, failed, in, out, counted = done+r.done, failed+r.failed, in+r.in, out+r.out, counted || r.counted
	}
	took := Seconds(now.Sub(t.root.began))
	if !t.root.ended.IsZero() {
		took = picture.Elapsed(t.root.ended.Sub(t.root.began))
	}
	facts := []string{fmt.Sprintf("%d done", done)}
	if t.root.ended.IsZero() {
		facts = append(facts, fmt.Sprintf("%d under way", going))
	}
	if failed > 0 {
		facts = append(facts, fmt.Sprintf("%d failed %s", failed, plural(failed, "attempt")))
	}
	if counted {
		facts = append(facts, fmt.Sprintf("%d+%d tokens%s", in, out, cost(micros)))
	}
	if n := len(t.runs) - 1; n > 0 {
		facts = append(facts, fmt.Sprintf("%d %s", n, plural(n, "subworkflow")))
	}
	return Line{Parts: []Part{{Faint, took + "  " + strings.Join(facts, ", ")}}}
}

// cost is what tokens have cost, behind their number; "" where nothing has a price.
func cost(micros int64) string {
	if micros == 0 {
		return ""
	}
	return ", " + agentview.USD(micros)
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
