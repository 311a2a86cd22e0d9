package lint_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

const root = "../.."

// protocol holds the data of the protocol, beside the repository.
const protocol = root + "/../shared/awp-v1"

// judged says why a warning about a document of the corpus is true, by file and code.
var judged = map[string]string{
	"tutorial.md UNKNOWN_NODE":                               "the page shows what becomes of a misspelt target",
	"entry_not_start.txt GRAPH_ENTRY":                        "the script is about a run that passes the start node by",
	"fail_edge.txt UNKNOWN_NODE":                             "the script is about an edge to nowhere",
	"fail_switch.txt SWITCH_WITHOUT_DEFAULT":                 "the script is about a switch in which no case matches",
	"repair_bad_interval.txt DURATION_INVALID":               "the script is about an interval that is none",
	"repair_loop.txt GRAPH_UNUSED_EDGE":                      "the edges of its switch are never followed",
	"lighthouse-customer-routing.workflow.json RETRY_POLICY": "there is no pause to which the coefficient applies",
	"r3-unit-tests-child.workflow.json TEMPLATE_IS_LITERAL":  "nothing fills the template in",
	"order.workflow.yaml QUESTION_SHOWS_NOTHING":             "the definition is plain AWP, without the extension that shows something",
}

// blind says why a question that shows nothing is right in parts of the corpus that nobody answers at a screen.
var blind = map[string]string{
	"definitions": "the document is compiled, not run", "scripts": "the script gives the answer", "protocol": "AWP has nothing that shows what a question is about",
}

// part is a part of the corpus: a folder, and what finds definitions in its files.
type part struct {
	name, dir string
	documents func(path string, text []byte) []*definition.Document
}

// TestCorpus lints every valid document of the repository and lists what is found: all of it has been judged to be true.
func TestCorpus(t *testing.T) {
	t.Parallel()
	golden(t, "corpus.golden", listed(t,
		part{"examples", root + "/examples", whole},
		part{"pages", root + "/docs", blocks},
		part{"reference", root + "/docs/definitions", whole},
		part{"definitions", root + "/graph/definition/testdata", whole},
		part{"scripts", root + "/graph/machine/testdata", inside},
	))
}

// TestProtocolCorpus does the same with the documents of the protocol.
func TestProtocolCorpus(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(protocol); errors.Is(err, os.ErrNotExist) {
		t.Skip("the protocol's data (../shared/awp-v1 beside the repository) is absent")
	}
	golden(t, "protocol.golden", listed(t, part{"protocol", protocol, inside}))
}

// listed lints the documents of some parts.
func listed(t *testing.T, parts ...part) string {
	t.Helper()
	var b strings.Builder
	for _, p := range parts {
		count, resolved, lines, seen := 0, 0, []string{}, map[string]bool{}
		paths := files(t, p.dir)
		documents := map[string][]*definition.Document{}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			documents[path] = p.documents(path, text)
		}
		for _, path := range paths {
			subworkflow := func(ref, _ string) *definition.Document {
				for _, other := range append([]string{path}, paths...) { // in the same file, else in the same folder
					if doc := named(documents[other], ref); doc != nil && filepath.Dir(other) == filepath.Dir(path) {
						resolved++
						return doc
					}
				}
				return nil
			}
			for _, doc := range documents[path] {
				program, findings := lint.Compile(doc, lint.Options{
					Options: definition.Options{AllowInterruptInBranch: true}, Subworkflow: subworkflow,
				})
				if program == nil || seen[doc.Hash()] {
					continue
				}
				seen[doc.Hash()] = true
				count++
				for _, f := range findings {
					reason := judged[filepath.Base(path)+" "+string(f.Code)]
					if reason == "" && f.Code == problem.QuestionShowsNothing {
						reason = blind[p.name]
					}
					if reason == "" {
						t.Errorf("%s: nobody has judged %s at %s: %s", path, f.Code, f.At.Pointer, f.Message)
					}
					lines = append(lines, fmt.Sprintf("  %s: %s %s: %s\n    true: %s\n", filepath.Base(path), f.Code, f.At.Pointer, f.Message, reason))
				}
			}
		}
		if count == 0 {
			t.Errorf("%s has no valid document", p.dir)
		}
		fmt.Fprintf(&b, "%s: %d documents, %d subworkflows, %d warnings\n%s", p.name, count, resolved, len(lines), strings.Join(lines, ""))
	}
	return b.String()
}

// named finds a subworkflow among documents.
func named(docs []*definition.Document, ref string) *definition.Document {
	for _, doc := range docs {
		root, _ := doc.Value().(map[string]any)
		about, _ := root["document"].(map[string]any)
		if about["name"] == ref[strings.LastIndex(ref, ":")+1:] {
			return doc
		}
	}
	return nil
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && slices.Contains([]string{".json", ".yaml", ".md", ".txt"}, filepath.Ext(path)) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// whole is a file that is one definition.
func whole(path string, text []byte) []*definition.Document {
	parse := definition.Parse
	if filepath.Ext(path) != ".json" {
		parse = definition.ParseYAML
	}
	if doc, err := parse(text); err == nil {
		return []*definition.Document{doc}
	}
	return nil
}

var block = regexp.MustCompile("(?ms)^```(?:yaml|json)\n(.*?)^```\n")

// blocks are the definitions of a page.
func blocks(_ string, text []byte) []*definition.Document {
	var docs []*definition.Document
	for _, m := range block.FindAllSubmatch(text, -1) {
		if doc, err := definition.ParseYAML(m[1]); err == nil {
			docs = append(docs, doc)
		}
	}
	return docs
}

// inside are the definitions somewhere in a file: in the values of a JSON text, or between the lines of a script.
func inside(_ string, text []byte) []*definition.Document {
	if v, err := jsonvalue.Decode(text); err == nil {
		return within(v)
	}
	var docs []*definition.Document
	for rest := string(text); ; {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			return docs
		}
		before := len(rest) - len(after) - 1
		end := closing(rest[before:])
		if v, err := jsonvalue.Decode([]byte(rest[before : before+end])); err == nil {
			docs = append(docs, within(v)...)
		}
		rest = rest[before+max(end, 1):]
	}
}

// closing returns where the object ends with which a text begins, 0 if it does not.
func closing(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

func within(v any) []*definition.Document {
	var docs []*definition.Document
	switch v := v.(type) {
	case map[string]any:
		if v["document"] != nil && v["nodes"] != nil {
			if doc, err := definition.FromValue(v); err == nil {
				return []*definition.Document{doc}
			}
		}
		for _, name := range jsonvalue.Keys(v) {
			docs = append(docs, within(v[name])...)
		}
	case []any:
		for _, e := range v {
			docs = append(docs, within(e)...)
		}
	}
	return docs
}
