package definition_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

const yamlLinear = `# A definition as people write it.
document:
  schema: https://agent-workflow.dev/schemas/workflow-definition.json
  name: linear
  version: "1.0.0"
state_schema:
  type: object
  properties:
    greeting: {type: string}
nodes:
  - {id: start, type: start}
  - id: greet
    type: step
    config:
      handler: greet
  - {id: end, type: end}
edges:
  - {source: __start__, target: start}
  - {source: start, target: greet}
  - {source: greet, target: end}
`

func TestYAMLMeansTheSame(t *testing.T) {
	t.Parallel()
	want, _, _ := compileValue(t, base(t, "linear"))
	d, err := definition.ParseYAML([]byte(yamlLinear))
	if err != nil {
		t.Fatal(err)
	}
	if d.Hash() != want.Hash() {
		t.Errorf("got %s\nwant %s", d.Canonical(), want.Canonical())
	}
	d, err = definition.ParseYAML([]byte(strings.Replace(yamlLinear, "type: step", "type: stepp", 1)))
	if err != nil {
		t.Fatal(err)
	}
	_, findings := definition.Compile(d, definition.Options{})
	if len(findings) != 1 || place(findings[0]) != "13:11 /nodes/1" {
		t.Errorf("got\n%s", list(findings))
	}
}

// TestYAMLScalars shows how unquoted scalars are read: as JSON would, or as texts.
func TestYAMLScalars(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`1`: `1`, `-2.5e3`: `-2500`, `0`: `0`, `-0`: `0`, `true`: `true`, `False`: `false`, `null`: `null`, `~`: `null`, ``: `null`,
		`yes`: `"yes"`, `no`: `"no"`, `on`: `"on"`, `off`: `"off"`, `y`: `"y"`, `2026-01-31`: `"2026-01-31"`,
		`2026-01-31T10:00:00Z`: `"2026-01-31T10:00:00Z"`, `1.2.3`: `"1.2.3"`, `30s`: `"30s"`, `.a > 1`: `".a > 1"`, `"1"`: `"1"`,
		`'yes'`: `"yes"`, `!!str 1`: `"1"`, `!!int 3`: `3`, `!!float 3`: `3`, `!!bool true`: `true`, `!!null ~`: `null`, `!!str`: `""`,
		`"\u00e9\x41"`: `"éA"`, "|\n  two\n  lines": `"two\nlines\n"`, ">-\n  one\n  line": `"one line"`, `[1, {b: []}]`: `[1,{"b":[]}]`,
		`{"json": [1, null, "x"]}`: `{"json":[1,null,"x"]}`, `!!seq [1]`: `[1]`, `&x 1`: `1`, `12e`: `"12e"`, `-`: `[null]`, `+`: `"+"`,
		`1 2`: `"1 2"`, `0x`: `"0x"`,
	} {
		d, err := definition.ParseYAML([]byte("a: " + text + "\n"))
		if text == "-" {
			d, err = definition.ParseYAML([]byte("a:\n  -\n"))
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := string(d.Canonical()); got != `{"a":`+want+`}` {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestYAMLAliases(t *testing.T) {
	t.Parallel()
	d, err := definition.ParseYAML([]byte("retry: &r {max_attempts: 3}\nnodes:\n  - {retry: *r}\n  - {retry: *r}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(d.Canonical()); got != `{"nodes":[{"retry":{"max_attempts":3}},{"retry":{"max_attempts":3}}],"retry":{"max_attempts":3}}` {
		t.Errorf("got %s", got)
	}
}

// TestFence: a text in a code block of Markdown is refused with what to do, whatever the block's reader makes of the line.
func TestFence(t *testing.T) {
	t.Parallel()
	for text, read := range map[string]func([]byte) (*definition.Document, error){
		"```json\n{}\n```": definition.ParseYAML, "{}\n```\n": definition.Parse, "```yaml\na: 1\n```": definition.ParseYAML,
	} {
		_, err := read([]byte(text))
		if e, ok := problem.As(err); !ok || !strings.Contains(e.Error(), "code block") || !strings.Contains(e.Findings[0].Hint, "leave the lines with ``` out") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := definition.ParseYAML([]byte("prompt: |\n  Write:\n  ```\n  x\n  ```\n")); err != nil {
		t.Errorf("a code block in a text: %v", err)
	}
}

// TestYAMLSyntaxNamesTheLine: an error of syntax names the line of the fault, and what to do.
func TestYAMLSyntaxNamesTheLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text  string
		place string
		hint  string
	}{
		"a colon in a text":              {"a:\n  b: 1\n  c: text: more\n  d: 1\n", "3:3", `quote the text if it holds ": "`},
		"a colon on the first line":      {"a: text: more\nb: 1\n", "1:1", "quote the text"},
		"a colon on a second line":       {"a: 1\nb: text\n  goes on: more\n", "3:3", "quote the text"},
		"a member too far right":         {"a: 1\n  b: 1\n", "2:3", "indent the fields of an object alike"},
		"a member too far left":          {"a: 1\nb:\n  c: 1\n d: 1\ne: 1\n", "4:2", "indent the fields of an object alike"},
		"a member of an element":         {"a:\n  - b: 1\n    c: 2\n   d: 3\n", "4:4", "the fields of an element as far as its first one"},
		"a member behind a list":         {"x: 1\na:\n  - b\n  c: 1\nd: 1\n", "4:3", "indent the dashes"},
		"an element behind a member":     {"a: 1\nb: 2\n- c\n", "3:1", "indent the fields"},
		"a text of several lines":        {"a: |\n  x\n y\nb: 1\n", "3:2", "indent"},
		"words behind a quoted text":     {"a: 1\nb: 1\nc: \"x\" y\nd: 1\n", "3:1", "quote a text as a whole"},
		"a bracket too many":             {"a: 1\nb: [1, 2]]\n", "2:1", ""},
		"quotes that are not closed":     {"a: 1\nb: \"open\nc: 1\nd: 1\n", "2:1", "close the quotes"},
		"single ones":                    {"a: 1\nb: 'it\nc: 1\nd: 1\n", "2:1", "close the quotes"},
		"quotes closed by others":        {"a:\n  b: c\n  d: \"e\n  f: g\"h\n", "3:3", "close the quotes that begin here: their text ends on line 4"},
		"a line of directives":           {"%YAML 1.2\n---\na: 1\n", "1:1", "leave the line %YAML out"},
		"a tab":                          {"a: 1\nb:\n\tc: 1\n", "3:1", "not with tabs"},
		"a tab behind blanks":            {"a: 1\nb:\n  c: 1\n\td: 1\n", "4:1", "not with tabs"},
		"a text that begins with a mark": {"a: 1\nb: @x\n", "2:1", "begins with %, @"},
		"an escape":                      {"a: 1\nb: \"x\n  \\q\"\n", "3:3", "single quotes"},
		"a list that is not closed":      {"a: 1\nb: [1,\n  2\nc: 1\nd: 1\n", "2:1", "close the list"},
		"a question in an object":        {"a: 1\nb: {c: right?, d: 1}\n", "2:1", `"?,"`},
		"one on the first line":          {"a: [1,\n  2\nc: 1\nd: 1\n", "1:1", "close the list"},
		"a value that is missing":        {"a: 1\nb: 2\nc: [1, , 2]\n", "3:1", ""},
		"a name without a colon":         {"a: 1\nb\nc: 1\n", "2:1", `put ": " after the name`},
		"a list on the line of its name": {"a: 1\nb: - c\n", "2:1", "begin a list on a new line"},
		"a text that begins with >":      {"a: 1\nb: >x\n  y\n", "2:1", "on the next line"},
		"a text that begins with *":      {"a: 1\nb: *x\nc: 1\n", "2:1", "begins with *"},
		"two documents":                  {"a: 1\n---\nb: 2\n", "2:1", "keep one document"},
		"behind values that resemble it": {"a: [1,\n  2]\nb: \"x\n  y\"\nc:\n  - {d: 1,\n     e: 2}\n  f: 1\n", "8:3", "indent the dashes"},
	} {
		_, err := definition.ParseYAML([]byte(tt.text))
		e, ok := problem.As(err)
		if !ok || len(e.Findings) != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := strings.TrimSpace(place(e.Findings[0])); got != tt.place || !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%s: %s: %v (%s)", name, got, err, e.Hint)
		}
	}
}

func TestYAMLRefuses(t *testing.T) {
	t.Parallel()
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 8 {
		name, before := string(rune('1'+i)), string(rune('0'+i))
		bomb += "a" + name + ": &a" + name + " [" + strings.Repeat("*a"+before+", ", 9) + "*a" + before + "]\n"
	}
	tests := []struct {
		name, text string
		want       []string
	}{
		{"nothing", ``, []string{"DEFINITION_SYNTAX"}},
		{"only a comment", "# nothing\n", []string{"DEFINITION_SYNTAX"}},
		{"syntax", "a: [1\nb: 2\n", []string{"DEFINITION_SYNTAX 1:1"}},
		{"a fence around it", "\n```yaml\na: 1\n```\n", []string{"DEFINITION_SYNTAX 2:1"}},
		{"tab", "a:\n\tb: 1\n", []string{"DEFINITION_SYNTAX 2:1"}},
		{"two documents", "a: 1\n---\nb: 2\n", []string{"DEFINITION_SYNTAX"}},
		{"duplicate", "a: 1\nb:\n  c: 1\n  c: 2\n", []string{"DEFINITION_DUPLICATE_MEMBER 4:3 /b/c"}},
		{"duplicate in other quotes", "a: 1\n\"a\": 2\n", []string{"DEFINITION_DUPLICATE_MEMBER 2:1 /a"}},
		{"reserved", "a: {__proto__: 1}\n", []string{"DEFINITION_RESERVED_MEMBER 1:5 /a/__proto__"}},
		{"number key", "a: {1: x}\n", []string{"YAML_UNSUPPORTED 1:5 /a"}},
		{"truth key", "true: 1\n", []string{"YAML_UNSUPPORTED 1:1 "}},
		{"null key", "~: 1\n", []string{"YAML_UNSUPPORTED 1:1 "}},
		{"list key", "? [a]\n: 1\n", []string{"YAML_UNSUPPORTED"}},
		{"merge key", "b: &b {c: 1}\na:\n  <<: *b\n", []string{"YAML_UNSUPPORTED 3:3 /a"}},
		{"own tag", "a: !thing {}\n", []string{"YAML_UNSUPPORTED 1:4 /a"}},
		{"binary", "a: !!binary aGk=\n", []string{"YAML_UNSUPPORTED 1:4 /a"}},
		{"date tag", "a: !!timestamp 2026-01-31\n", []string{"YAML_UNSUPPORTED 1:4 /a"}},
		{"wrong tag", "a: !!int x\n", []string{"YAML_UNSUPPORTED 1:4 /a"}},
		{"wrong number tag", "a: !!int 1.5\n", []string{"YAML_UNSUPPORTED 1:4 /a"}},
		{"octal", "a: 017\nb: 0o17\n", []string{"YAML_UNSUPPORTED 1:4 /a", "YAML_UNSUPPORTED 2:4 /b"}},
		{"hexadecimal, binary", "a: [0xff, 0b11]\n", []string{"YAML_UNSUPPORTED 1:5 /a/0", "YAML_UNSUPPORTED 1:11 /a/1"}},
		{"separators, base 60", "a: [1_000, 1:30]\n", []string{"YAML_UNSUPPORTED", "YAML_UNSUPPORTED"}},
		{"half numbers", "a: [.5, 1., +1]\n", []string{"YAML_UNSUPPORTED", "YAML_UNSUPPORTED", "YAML_UNSUPPORTED"}},
		{"infinities", "a: [.inf, -.Inf, .nan]\n", []string{"YAML_UNSUPPORTED", "YAML_UNSUPPORTED", "YAML_UNSUPPORTED"}},
		{"overflow", "a: 1e400\n", []string{"DEFINITION_NUMBER 1:4 /a"}},
		{"UTF-8", "a: \"\xff\"\n", []string{"DEFINITION_ENCODING 1:5"}},
		{"a number behind a byte order mark", "\ufeffa: 017\n", []string{"YAML_UNSUPPORTED 1:4 /a"}},
		{"a second byte order mark", "a: 1\n\ufeffb: 017\n", []string{"YAML_UNSUPPORTED"}},
		{"UTF-16", "\xff\xfea\x00", []string{"DEFINITION_ENCODING 1:1"}},
		{"deep", strings.Repeat("[", 600) + strings.Repeat("]", 600), []string{"DEFINITION_TOO_DEEP"}},
		{"alias inside itself", "a: &x [*x]\n", []string{"YAML_UNSUPPORTED"}},
		{"unknown alias", "a: *x\n", []string{"DEFINITION_SYNTAX"}},
		{"alias bomb", bomb, []string{"DEFINITION_TOO_LARGE"}},
		{"large", "a: " + strings.Repeat("x", definition.MaxBytes), []string{"DEFINITION_TOO_LARGE"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := definition.ParseYAML([]byte(tt.text))
			if err == nil {
				t.Fatal("read")
			}
			checkRefusal(t, err, tt.want)
		})
	}
}
