package fragment

import (
	"fmt"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// The largest numbers of visits of a sequence and of items of a map that the tree shows.
const (
	maxVisits = 200
	maxItems  = 40
)

// tree makes the tree of a run's visits.
type tree struct {
	id     string
	now    time.Time
	linked bool
	// items are those of each map: first the failed ones and the open ones, then others, at most maxItems.
	items map[*timeline.Items]*shownItems
}

// shownItems are the items of a map that are shown, and how many are left out.
type shownItems struct {
	list []*timeline.Visit
	rest int
}

// VisitsOf returns the visits of a run as a tree, nil without visits. linked makes links to the pages of visits and runs.
func VisitsOf(run *timeline.Run, now time.Time, linked bool) *Visits {
	if len(run.Visits) == 0 {
		return nil
	}
	t := &tree{id: run.ID, now: now, linked: linked, items: map[*timeline.Items]*shownItems{}}
	t.choose(run)
	return t.sequence(&run.Main)
}

// link returns a path, "" in a tree without links.
func (t *tree) link(path string) string {
	if !t.linked {
		return ""
	}
	return path
}

// choose picks the items of maps to show, in their order: the failed and open ones have precedence.
func (t *tree) choose(run *timeline.Run) {
	count, urgent := map[*timeline.Items]int{}, map[*timeline.Items]int{}
	isUrgent := func(v *timeline.Visit) bool { return v.State == timeline.Failed || v.Ended.IsZero() }
	for _, v := range run.Visits {
		if v.IsItem() {
			count[v.Items]++
			if isUrgent(v) {
				urgent[v.Items]++
			}
		}
	}
	others := map[*timeline.Items]int{}
	for _, v := range run.Visits {
		if !v.IsItem() {
			continue
		}
		s := t.items[v.Items]
		if s == nil {
			s = &shownItems{}
			t.items[v.Items] = s
		}
		room := len(s.list) < maxItems
		if room && !isUrgent(v) {
			room = others[v.Items] < maxItems-min(urgent[v.Items], maxItems)
			others[v.Items]++
		}
		if room {
			s.list = append(s.list, v)
		}
		s.rest = count[v.Items] - len(s.list)
	}
}

func (t *tree) sequence(s *timeline.Sequence) *Visits {
	out := &Visits{History: t.link(HistoryPath(t.id, 0))}
	visits := s.Visits
	if out.Before = len(visits) - maxVisits; out.Before > 0 {
		visits = visits[out.Before:]
	} else {
		out.Before = 0
	}
	for _, v := range visits {
		out.List = append(out.List, t.visit(v))
	}
	return out
}

func (t *tree) visit(v *timeline.Visit) Visit {
	out := Visit{
		Name: v.Node, Number: v.Number, Path: t.link(VisitPath(t.id, v.Node, v.Number)), State: VisitState(v), Took: VisitTook(v, t.now),
		Details: VisitDetails(v),
	}
	if v.Definition != nil {
		out.Kind = string(v.Definition.Type)
	}
	if index, of := v.Item(); of != 0 {
		out.Name, out.Number, out.Kind = fmt.Sprintf("item %d", index+1), 0, ""
	}
	switch v.State {
	case timeline.Failed, timeline.Retrying, timeline.Asking:
		out.Error = v.Text
		if v.State == timeline.Asking {
			out.Details, out.Error = append(out.Details, v.Text), ""
		}
	}
	for _, b := range v.Branches {
		out.Inner = append(out.Inner, t.branch(b))
	}
	if i := v.Items; i != nil && !v.IsItem() {
		if s := t.items[i]; s != nil {
			inner := &Visits{After: s.rest, History: t.link(HistoryPath(t.id, v.Seq))}
			for _, item := range s.list {
				inner.List = append(inner.List, t.visit(item))
			}
			out.Inner = append(out.Inner, inner)
		}
	}
	if v.Child != nil {
		out.Child = &Link{Text: v.Child.ID, Path: t.link(RunPath(v.Child.ID))}
	}
	return out
}

func (t *tree) branch(b *timeline.Branch) *Visits {
	out := t.sequence(&b.Sequence)
	out.Name = b.Name
	switch {
	case b.Dropped:
		out.State = State{Class: "stopped", Sign: "–", Word: "not needed"}
	case b.Done():
		out.State = State{Class: "done", Sign: "✓", Word: "done"}
	}
	return out
}

// VisitTook returns the time of a visit; that of an open one is in whole seconds.
func VisitTook(v *timeline.Visit, now time.Time) string {
	switch {
	case v.Began.IsZero(), v.Definition != nil && v.Definition.Type.Info().Instant && v.Took(now) < time.Millisecond:
		return ""
	case v.Ended.IsZero():
		return timeline.Seconds(v.Took(now))
	}
	return timeline.Elapsed(v.Took(now))
}

// VisitDetails describes a visit in a few words.
func VisitDetails(v *timeline.Visit) (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if v.Compensates != "" {
		say("undoes %s", v.Compensates)
	}
	if n := v.AttemptNumber(); n > 1 {
		say("%d attempts", n)
	}
	if a := v.Attempt(); a != nil {
		work := a.Journal.Work
		switch {
		case work != nil && work.Known() && v.Ended.IsZero():
			say("%s: %s", work.Name(), work.Text())
		case a.AgentID != "":
			say("agent %s", a.AgentID)
		}
		if in, out, ok := a.Used().Tokens(); ok {
			say("%d+%d tokens", in, out)
		}
		if micros := a.Used().CostMicros(); micros > 0 {
			say("%s", timeline.USD(micros))
		}
	}
	if w := v.Wait(); w != nil && !w.Due.IsZero() {
		say("until %s", w.Due.UTC().Format("2006-01-02 15:04:05Z"))
	}
	if v.State == timeline.Listening {
		say("signal %s", v.Text)
	}
	if i := v.Items; i != nil && i.Owner == v {
		if i.Total >= 0 {
			say("%d of %d items", i.Done+i.Failed, i.Total)
		} else {
			say("%d items", i.Done+i.Failed)
		}
		if i.Failed > 0 {
			say("%d failed", i.Failed)
		}
	}
	if v.Next != "" {
		say("→ %s", v.Next)
	}
	return list
}
