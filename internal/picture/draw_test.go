package picture_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/picture"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

type object = map[string]any

// crowd is a block with many branches that look alike, and one that does not.
func crowd(t *testing.T, branches int) *definition.Program {
	t.Helper()
	nodes := []any{object{"id": "begin", "type": "start"}, object{"id": "finish", "type": "end"},
		object{"id": "other", "type": "wait", "config": object{"kind": "signal", "signal": "paid"}}}
	edges := []any{object{"source": "__start__", "target": "begin"}, object{"source": "begin", "target": "fan"},
		object{"source": "fan", "target": "finish"}, object{"source": "other", "target": "finish"}}
	list := []any{object{"name": "x", "entry": "other"}}
	for i := range branches {
		draft, check := fmt.Sprintf("draft%d", i), fmt.Sprintf("check%d", i)
		nodes = append(nodes, object{"id": draft, "type": "step", "config": object{"handler": "h"}}, object{"id": check, "type": "step", "config": object{"handler": "h"}})
		edges = append(edges, object{"source": draft, "target": check}, object{"source": check, "target": "finish"})
		list = append(list, object{"name": fmt.Sprintf("b%d", i), "entry": draft})
	}
	nodes = append(nodes, object{"id": "fan", "type": "parallel", "config": object{"join": "all", "branches": list}})
	doc, err := definition.FromValue(object{
		"document":     object{"schema": "https://agent-workflow.dev/schemas/workflow-definition.json", "name": "crowd", "version": "1.0.0"},
		"state_schema": object{"type": "object"}, "nodes": nodes, "edges": edges,
	})
	if err != nil {
		t.Fatal(err)
	}
	prog, findings := definition.Compile(doc, definition.Options{})
	if prog == nil {
		t.Fatal(findings)
	}
	return prog
}

// visited is a run in which nodes have these states.
func visited(prog *definition.Program, states map[string]timeline.State) *timeline.Run {
	run := &timeline.Run{}
	for _, n := range prog.Nodes {
		if state, ok := states[n.ID]; ok {
			v := &timeline.Visit{Node: n.ID, Number: 1, State: state, Definition: n}
			if state != timeline.Working {
				v.Began, v.Ended = time.Unix(0, 0), time.Unix(2, 0)
			}
			run.Visits = append(run.Visits, v)
		}
	}
	return run
}

// TestManyAlikeBranchesAreFolded: more than eight branches of one shape are one column with counts, until they are unfolded.
func TestManyAlikeBranchesAreFolded(t *testing.T) {
	t.Parallel()
	prog := crowd(t, 20)
	states := map[string]timeline.State{"draft19": timeline.Working, "draft18": timeline.Failed}
	for i := range 18 {
		states[fmt.Sprintf("draft%d", i)] = timeline.Succeeded
	}
	unfold := func(block string) string { return "/graph?unfold=" + block }
	svg := picture.Draw(prog, visited(prog, states), picture.Options{Unfold: unfold})
	for _, want := range []string{">draft0 × 20<", ">check0 × 20<", ">18 done, 1 failed, 1 now<", ">20 branches<", `<a href="/graph?unfold=fan"`, `id="n-other"`} {
		if !strings.Contains(strings.ReplaceAll(svg, "running", "now"), want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	if strings.Contains(svg, "draft1<") {
		t.Error("a branch is drawn by itself")
	}
	requireApart(t, "folded", svg)
	svg = picture.Draw(prog, nil, picture.Options{Unfold: unfold, Unfolded: []string{"fan"}})
	if !strings.Contains(svg, ">draft19<") || strings.Contains(svg, "unfold=") {
		t.Errorf("not unfolded:\n%s", svg)
	}
	if got := picture.Folded(prog, nil); !slices.Equal(got, []string{"fan"}) {
		t.Errorf("folded are %q", got)
	}
	if got := slices.Concat(picture.Folded(prog, []string{"fan"}), picture.Folded(crowd(t, 8), nil)); got != nil {
		t.Errorf("folded are %q", got)
	}
	if svg := picture.Draw(crowd(t, 8), nil, picture.Options{}); !strings.Contains(svg, ">draft7<") {
		t.Error("eight branches are folded")
	}
}

// TestNothingMoves: from the first visit of a run to its last, only classes and texts change.
func TestNothingMoves(t *testing.T) {
	t.Parallel()
	prog := crowd(t, 3)
	places := func(svg string) []string {
		return regexp.MustCompile(` (x|y|d|width|height|points)="[^"]*"`).FindAllString(regexp.MustCompile(`<text[^>]* font-size="10"[^>]*>[^<]*</text>`).ReplaceAllString(svg, ""), -1)
	}
	begun := picture.Draw(prog, visited(prog, map[string]timeline.State{"begin": timeline.Working}), picture.Options{})
	states := map[string]timeline.State{"begin": timeline.Succeeded, "fan": timeline.Succeeded, "draft0": timeline.Failed, "draft1": timeline.Dropped, "draft2": timeline.Succeeded}
	ended := picture.Draw(prog, visited(prog, states), picture.Options{})
	if !slices.Equal(places(begun), places(ended)) {
		t.Errorf("moved:\n%s\n%s", begun, ended)
	}
	for _, want := range []string{`id="n-draft0" class="node failed"`, `id="n-draft1" class="node stopped"`, `id="n-begin" class="node done" tabindex="0" role="img" aria-label="begin, start, done, 2s"`} {
		if !strings.Contains(ended, want) {
			t.Errorf("no %s in\n%s", want, ended)
		}
	}
	if !strings.Contains(begun, `id="n-begin" class="node now"`) || strings.Contains(begun, "<style") || !strings.Contains(picture.SVG(prog, nil), "<style") {
		t.Errorf("%s", begun)
	}
}

// TestLinks: a node with a link is reached by the keyboard once, and says its state.
func TestLinks(t *testing.T) {
	t.Parallel()
	prog := hostile(`a" onclick="x`)
	svg := picture.Draw(prog, nil, picture.Options{Link: func(node string) string { return "/visits/" + node }})
	texts(t, strings.NewReplacer("<a ", "<g ", "</a>", "</g>").Replace(svg))
	if !strings.Contains(svg, `<a href="/visits/w" aria-label="w, switch"><g id="n-w" class="node">`) || strings.Contains(svg, `onclick="`) {
		t.Errorf("%s", svg)
	}
}

// TestLoopsRunBeside: an edge that closes a loop enters its node at the side, not from below.
func TestLoopsRunBeside(t *testing.T) {
	t.Parallel()
	svg := picture.SVG(compile(t, "../../examples/approval-loop/approval-loop.workflow.json"), nil)
	if n := len(regexp.MustCompile(`class="edge" d="M[\d.]+ [\d.]+H[^"]*H[\d.]+"`).FindAllString(svg, -1)); n != 1 {
		t.Errorf("%d edges at the side of a box:\n%s", n, svg)
	}
}

// TestList: readers without a picture get each node once, those of branches inside their block.
func TestList(t *testing.T) {
	t.Parallel()
	prog := crowd(t, 2)
	var lines []string
	var write func(list []picture.Entry, indent string)
	write = func(list []picture.Entry, indent string) {
		for _, e := range list {
			text, _, _ := strings.Cut(e.Text, " (")
			if e.Facts != "" {
				text += " [" + string(e.State) + ": " + e.Facts + "]"
			}
			lines = append(lines, indent+text)
			write(e.Inside, indent+" ")
		}
	}
	write(picture.List(prog, visited(prog, map[string]timeline.State{"draft1": timeline.Succeeded})), "")
	want := []string{"begin", "fan", " x", "  other", " b0", "  draft0", "  check0", " b1", "  draft1 [done: done, 2s]", "  check1", "finish"}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q", lines)
	}
}
