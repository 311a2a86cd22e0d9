package workflowtest

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/workflows-engine/workflows-engine/graph/graphtest"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// Update writes the results of tests with snapshot: true into their expect, and leaves every other byte of the file unchanged. It reports
// whether the file has changed.
func (f *File) Update(base string, results []*Result) (changed bool, err error) {
	source := string(f.text)
	// From the last test to the first, so that the lines of those before stay where they are.
	for _, r := range slices.Backward(results) {
		if !r.Test.Snapshot || r.unfit || r.Passed() {
			continue
		}
		if source, err = replaceExpect(source, slices.Index(f.Tests, r.Test), snapshot(r.Outcome)); err != nil {
			return false, broken(f.Path, f.text, err)
		}
		changed = true
	}
	if !changed {
		return false, nil
	}
	path, err := filepath.EvalSymlinks(within(base, f.Path))
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(path); err == nil {
			err = (&regularfile.Replacement{Name: path, Was: f.text, Text: []byte(source), Mode: info.Mode().Perm()}).Replace()
		}
	}
	if err != nil {
		return false, problem.New(problem.UsageError, "%s cannot be written", f.Path).WithCause(err)
	}
	return true, nil
}

// replaceExpect replaces the expectation of a test, or adds it at the test's end.
func replaceExpect(source string, test int, expect *yaml.Node) (string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(source), &doc); err != nil {
		return "", err
	}
	tests := member(doc.Content[0], "tests")
	if tests == nil || tests.Kind != yaml.SequenceNode || tests.Content[test].Kind != yaml.MappingNode ||
		(doc.Content[0].Style|tests.Style|tests.Content[test].Style)&yaml.FlowStyle != 0 {
		return "", problem.New(problem.TestFileInvalid, "the snapshot cannot be written: the test is not in YAML's block style").
			WithHint("Write each field of the test on its own line, without braces.")
	}
	item := tests.Content[test]
	indent := item.Column - 1
	lines := strings.SplitAfter(source, "\n")
	var from, to int
	if key := memberName(item, "expect"); key != nil {
		from = key.Line - 1
		to = blockEnd(lines, from+1, indent+1)
	} else {
		from = blockEnd(lines, item.Line, indent)
		to = from
	}
	text, err := render(expect, indent)
	if err != nil {
		return "", err
	}
	before := strings.Join(lines[:from], "")
	if before != "" && !strings.HasSuffix(before, "\n") {
		before += "\n"
	}
	if key := memberName(item, "expect"); key != nil && key == item.Content[0] { // it stands behind the dash
		before += lines[from][:indent]
		text = strings.TrimLeft(text, " ")
	}
	return before + text + strings.Join(lines[to:], ""), nil
}

// blockEnd returns the line after a block that begins before the line from, and whose lines are indented at least so far. Empty lines
// and comments at its end do not belong to it.
func blockEnd(lines []string, from, indent int) int {
	end := from
	for i := from; i < len(lines); i++ {
		content := strings.TrimLeft(lines[i], " ")
		switch trimmed := strings.TrimSpace(content); {
		case trimmed == "" || trimmed[0] == '#':
		case len(lines[i])-len(content) < indent:
			return end
		default:
			end = i + 1
		}
	}
	return end
}

// render returns the text of the field expect, indented so far.
func render(expect *yaml.Node, indent int) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar("expect"), expect}}); err != nil {
		return "", err
	}
	var text strings.Builder
	for line := range strings.Lines(out.String()) {
		if strings.TrimSpace(line) != "" {
			text.WriteString(strings.Repeat(" ", indent))
		}
		text.WriteString(line)
	}
	return text.String(), nil
}

func memberName(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i]
		}
	}
	return nil
}

func member(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// snapshot is the expectation that this run meets.
func snapshot(out *graphtest.Outcome) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	put := func(name string, value *yaml.Node) { n.Content = append(n.Content, scalar(name), value) }
	put("status", scalar(string(out.Status)))
	if len(out.Path) > 0 {
		put("path", flow(out.Path))
	}
	if len(out.Waiting) > 0 {
		put("waiting", flow(out.Waiting))
	}
	if out.Status == machine.Completed {
		put("result", node(out.Result))
	}
	if f := out.Error; f != nil {
		e := map[string]any{"message": f.Message}
		if f.Code != "" {
			e["code"] = f.Code
		}
		if f.NodeID != "" {
			e["node"] = f.NodeID
		}
		put("error", node(e))
	}
	if out.State != nil {
		put("state", node(out.State))
		put("exactly", node(true))
	}
	if out.Elapsed > 0 {
		put("elapsed", &yaml.Node{Kind: yaml.ScalarNode, Value: durationText(out.Elapsed)})
	}
	return n
}

func flow(texts []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, text := range texts {
		n.Content = append(n.Content, scalar(text))
	}
	return n
}

// word matches a text that needs no quotes in YAML, unless it is one of otherWords.
var word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$`) })

var otherWords = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// scalar is a text, in quotes where some reader could take it for something else.
func scalar(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle}
	if word().MatchString(text) && !slices.Contains(otherWords, strings.ToLower(text)) {
		n.Style = 0
	}
	return n
}

// node returns a JSON value as YAML: numbers as in JSON, fields in the protocol's order.
func node(v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, name := range jsonvalue.Keys(v) {
			n.Content = append(n.Content, scalar(name), node(v[name]))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, e := range v {
			n.Content = append(n.Content, node(e))
		}
		return n
	case string:
		return scalar(v)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: string(jsonvalue.Canonical(v))}
}
