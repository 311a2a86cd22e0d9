package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func TestReadable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		v    any
		want string
	}{
		"a text":        {"Dear all,\nwe move.", "Dear all,\nwe move."},
		"lines of text": {map[string]any{"report": "one\ntwo", "title": "T"}, "title: T\nreport:\n  one\n  two"},
		"inner values": {map[string]any{"title": nil, "report": map[string]any{"n": 7.0, "ok": true, "tags": []any{"a", "b"}, "none": []any{}}},
			"title: (nothing)\nreport:\n  tags:\n    - a\n    - b\n  n: 7\n  none: (nothing)\n  ok: true"},
		"objects in a list": {[]any{map[string]any{"a": 1.0, "b": "x"}, map[string]any{"a": 2.0}}, "- a: 1\n  b: x\n- a: 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, cut := readable(c.v, func(o map[string]any) []string {
				return writtenOrder(o, "{ title, report: .report.title_report | {tags, n} }")
			}, 1000); got != c.want || cut {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestReadableKeepsEachMember: long members share the room, and short ones stay whole, wherever they stand.
func TestReadableKeepsEachMember(t *testing.T) {
	t.Parallel()
	v := map[string]any{"a_long": strings.Repeat("ä", 100_000), "b_list": []any{strings.Repeat("x", 9000), "y"}, "z_amount": 10_000.0, "z_payee": "Miller & Sons"}
	got := (&Pending{WaitInfo: machine.WaitInfo{Show: v}, ExecutionID: "run-7"}).Shown(2000)
	for _, want := range []string{"a_long: äää", "b_list:\n  - xxx", "\nz_amount: 10000\n", "\nz_payee: Miller & Sons\n", "Shortened: the status of run run-7 has"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if len(got) > 2200 {
		t.Errorf("%d bytes", len(got))
	}
}

// TestReadableIsBounded: short values stay whole at every depth, whatever stands before them, and no value makes the text much longer than
// it may be.
func TestReadableIsBounded(t *testing.T) {
	t.Parallel()
	long, many, deep := strings.Repeat("line\n", 20_000), map[string]any{}, any("bottom")
	for i := range 10_000 {
		many[fmt.Sprintf("member%05d", i)] = "some value"
	}
	for range 500 {
		deep = map[string]any{"in": deep, "list": []any{deep}, "text": long}
		if len(fmt.Sprint(deep)) > 1<<20 {
			break
		}
	}
	list := make([]any, 10_000)
	for i := range list {
		list[i] = map[string]any{"n": float64(i)}
	}
	for name, c := range map[string]struct {
		v    any
		want []string
	}{
		"inner values": {map[string]any{"order": map[string]any{"a_report": long, "payee": "Ada", "amount": 12.0}, "z": "last"}, []string{"order:\n", "\n  payee: Ada", "\n  amount: 12", "\nz: last"}},
		"items":        {list, []string{"- n: 0\n- n: 1\n", "… and 9"}},
		"members":      {many, []string{"member00000: some value\n", "… and 9"}},
		"depth":        {deep, []string{"text:"}},
	} {
		text, cut := readable(c.v, jsonvalue.Keys, 2000)
		if len(text) > 2300 || !cut {
			t.Errorf("%s: %d bytes, cut is %t", name, len(text), cut)
		}
		if len(text) > 1<<14 {
			text = text[:1<<14]
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, text)
			}
		}
	}
}

// TestShown: a question whose author shows nothing is asked with the state, and one that shows something with that alone.
func TestShown(t *testing.T) {
	t.Parallel()
	state := map[string]any{"draft": "Hello"}
	for name, c := range map[string]struct {
		p    Pending
		want string
	}{
		"nothing": {Pending{WaitInfo: machine.WaitInfo{Prompt: "Send?", State: state}, showsState: true}, "Send?\n\nState of the run:\ndraft: Hello"},
		"news": {Pending{WaitInfo: machine.WaitInfo{Prompt: "Send?", State: map[string]any{"to": "Ann", "draft": "Hello", "n": 2.0}}, written: []string{"n", "draft", "gone"}, showsState: true},
			"Send?\n\nNew since the last question:\nn: 2\ndraft: Hello\n\nEarlier:\nto: Ann"},
		"empty":  {Pending{WaitInfo: machine.WaitInfo{Prompt: "Send?"}, showsState: true}, "Send?"},
		"a text": {Pending{WaitInfo: machine.WaitInfo{Prompt: "Send?", State: state, Show: "Hello"}}, "Send?\n\nHello"},
		"null":   {Pending{WaitInfo: machine.WaitInfo{Prompt: "Send?", State: state}}, "Send?"},
	} {
		if got := c.p.Question(); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
