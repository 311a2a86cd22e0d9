package expr_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// TestErrorsTellNoValues: messages end up in histories and logs.
func TestErrorsTellNoValues(t *testing.T) {
	t.Parallel()
	state := object(t, `{"name": "s3cret", "n": 424242, "l": ["s3cret", 424242], "o": {"k": "s3cret"}, "d": "2026-01-0s3cret"}`)
	for _, src := range []string{
		`.name.x`, `.name[]`, `.n.x`, `.n[]`, `.l.x`, `.o[0]`, `.name | .[0] = 1`, `.name + .n`, `.name - .name`, `.o * .n`, `.l / 2`, `.n / 0`, `.n % 0`,
		`-.name`, `.name | tonumber`, `.name | fromjson`, `.name | error`, `error(.n)`, `error({a: .name})`, `.name | halt_error`, `{(.n): 1}`,
		`.o | keys | .[0] | .x`, `.name | implode`, `.n | explode`, `.n | ltrimstr(.name)`, `.name | split(.n)`, `.n | split(.name)`,
		`.name | test(.n)`, `.name | test("(" + .name)`, `.name | test("x"; .name)`, `.d | strptime("%Y-%m-%d")`, `.d | fromdate`, `.name | strftime("%Y")`, `.n | strftime(.n)`,
		`.name | @csv`, `[.o] | @csv`, `.d | @base64d`, `.name | format(.name)`, `.n | sort`, `.name | sort_by(.)`, `.n | add`, `.name | flatten`, `.l | flatten(-1)`,
		`.n | has("x")`, `.l | has("s3cret")`, `.name | contains(1)`, `.n | startswith(.name)`, `getpath(["name", "x"])`, `setpath(["name", "x"]; 1)`,
		`delpaths([["n", "x"]])`, `del(.n.x)`, `path(.name + "x")`, `.l[1:] = .name`, `.l[.name] = 1`, `.l[-424242] = 1`, `.l | .[.[1] * 1e9] = 1`, `. as [$a] | $a`,
		`.name | range(.)`, `limit(-424242; 1)`, `.l | first(.[] | .x)`, `.l | join({})`, `.l | transpose`, `.name | mktime`, `[.name] | mktime`, `.n | ascii_downcase`,
		`.name | length | .x`, `.name | repeat(.) | .x`, `break`, `.l | bsearch(.name) | .x`, `.name | sub("s"; 1)`, `.name | toboolean`, `input`, `. | tojson | fromjson | .name | .x`,
		`.name | ltrimstr(1)`, `.l[] | .x`, `.n | gsub("a"; "b")`, `.l | index(.[0]) | .x`, `.name | .[.n:] | .x`, `.l | implode`, `.l | from_entries`, `.o | to_entries | .[].value.x`,
		`.name | toboolean`, `.d | @base64d`, `.l | strftime("%Y")`, `[.name] | mktime`, `.n * 1e290 | gmtime`, `.l | .[{}]`, `.name | indices(.n)`, `getpath(.name)`, `.l | has(.name)`,
		`error({code: .name, message: .name})`, `error({code: "X", message: .name})`, `"a cannot be applied to: " + .name | tonumber`, `"a) cannot be applied to: " + .name | has(.n)`,
		`. as $s | .n | has("a) cannot be applied to: " + $s.name)`, `.name as $x | $x.y`, `try error(.name) catch error(.)`, `.name | splits(1)`, `.l | min_by(.x)`, `.o | map(.x)`, `.o | walk(.x)`, `.n | tostream | .x`, `.l | fromstream(.[])`, `.l | @sh "\(.)" | .x`,
	} {
		p, err := expr.Compile(src)
		if err != nil {
			continue
		}
		v, err := p.Eval(state)
		e, ok := problem.As(err)
		if !ok || e.Code != problem.ExpressionFailed && e.Code != "X" {
			t.Errorf("%s: %v, %v; want it to fail", src, v, err)
			continue
		}
		text := strings.ReplaceAll(err.Error()+e.Hint, src, "")
		if strings.Contains(text, "s3cret") || strings.Contains(text, "424242") {
			t.Errorf("%s: the message tells a value: %s", src, text)
		}
		if !strings.Contains(err.Error(), src) || !strings.Contains(err.Error(), `"name", "o"`) {
			t.Errorf("%s: the message does not tell program and members: %v", src, err)
		}
	}
}

func TestErrorMessages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ src, state, want string }{
		{`.a.b`, `{"a":5,"c":1}`, "the program `.a.b` failed: expected an object but got: number (the state has the members \"a\", \"c\")"},
		{`.a + .c`, `{"a":"x","c":1}`, "the program `.a + .c` failed: cannot add string and number (the state has the members \"a\", \"c\")"},
		{`.[]|.x`, `{}`, ""},
		{`.a[]`, `{"a":true}`, "the program `.a[]` failed: cannot iterate over: boolean (the state has the members \"a\")"},
		{`error("no customer")`, `{}`, "the program `error(\"no customer\")` failed: error: no customer (the state has no members)"},
		{`error("no " + .a)`, `{"a":"customer"}`, "the program `error(\"no \" + .a)` failed: it raised an error with a value of type string (the state has the members \"a\")"},
		{`.a|sort`, `{"a":1}`, "the program `.a|sort` failed: sort cannot be applied to: number (the state has the members \"a\")"},
		{`.a|tonumber`, `{"a":"abc"}`, "the program `.a|tonumber` failed: tonumber cannot be applied to a string that is not a number (the state has the members \"a\")"},
		{`.a|tonumber`, `{"a":[]}`, "the program `.a|tonumber` failed: tonumber cannot be applied to: array (the state has the members \"a\")"},
		{`.a|has("x")`, `{"a":1}`, "the program `.a|has(\"x\")` failed: has(string) cannot be applied to: number (the state has the members \"a\")"},
		{`.a|fromdate`, `{"a":"noon"}`, "the program `.a|fromdate` failed: strptime(string) cannot be applied to a string that does not match the format (the state has the members \"a\")"},
		{`[.a]|mktime`, `{"a":"noon"}`, "the program `[.a]|mktime` failed: mktime cannot be applied to an array: expected an array of 8 numbers (the state has the members \"a\")"},
		{`.a|.[{}]`, `{"a":[1]}`, "the program `.a|.[{}]` failed: expected start and end for slicing but got: object (the state has the members \"a\")"},
		{`limit(-1; .a)`, `{"a":1}`, "the program `limit(-1; .a)` failed: error: limit doesn't support negative count (the state has the members \"a\")"},
		{`error({message: "no stock", of: .a})`, `{"a":1}`, "the program `error({message: \"no stock\", of: .a})` failed: error: no stock (the state has the members \"a\")"},
		{`error({code: "NO_STOCK", message: "none left"})`, `{}`, "none left"},
		{`error({code: "TIMEOUT", message: "none left"})`, `{}`, "the program `error({code: \"TIMEOUT\", message: \"none left\"})` failed: error: none left (the state has no members)"},
		{`[repeat(1)]`, `{}`, "the program `[repeat(1)]` failed: it takes too many steps (the state has no members)"},
	} {
		p, err := expr.Compile(test.src)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.EvalLimits(object(t, test.state), expr.Limits{Cost: 10_000})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s:\n%s, want\n%s", test.src, got, test.want)
		}
	}
	many := map[string]any{}
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		many[string(c)] = nil
	}
	many[strings.Repeat("ä", 100)] = nil
	p, err := expr.Compile(".a|keys")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Eval(many); err == nil || !strings.HasSuffix(err.Error(), `"t" and 7 more)`) {
		t.Error(err)
	}
}

func TestCompileErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		src    string
		offset any // nil: unknown
		text   string
	}{
		{``, nil, "missing query"},
		{`.a |`, 4.0, "unexpected EOF"},
		{`(.a`, 3.0, "unexpected EOF"},
		{`.a && .b`, 3.0, `unexpected token "&"`},
		{`.a + foo(1)`, 5.0, "function not defined: foo/1"},
		{`.foo | foo`, 7.0, "function not defined: foo/0"},
		{`foo | foo`, nil, "function not defined: foo/0"},
		{`.a | $x`, 5.0, "variable not defined: $x"},
		{`map(_sort_by(.))`, 4.0, "function not defined: _sort_by/1"},
		{`.a | debug`, 5.0, "function not defined: debug/0"},
		{`input`, nil, "not allowed"},
		{`import "a" as a; .`, nil, "cannot load module"},
		{`"abc`, 4.0, "unterminated string"},
		{`.a ${b}`, nil, ""},
		{`break $x`, 6.0, "label not defined"},
	} {
		_, err := expr.Compile(test.src)
		e, ok := problem.As(err)
		if !ok || e.Code != problem.ExpressionInvalid {
			t.Errorf("%s: %v", test.src, err)
			continue
		}
		if !strings.Contains(e.Message, test.text) {
			t.Errorf("%s: %q, want %q in it", test.src, e.Message, test.text)
		}
		if got := e.Details["offset"]; got != test.offset && test.text != "" {
			t.Errorf("%s: offset %v, want %v", test.src, got, test.offset)
		}
	}
	_, err := expr.Compile(`.a | debug`)
	if e, _ := problem.As(err); e.Hint == "" {
		t.Error("no hint for a function that is left out on purpose")
	}
}

// TestMisspeltFunctions shows that a function that is not there is compared with those that are.
func TestMisspeltFunctions(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`.a | lenght`:      `did you mean "length"?`,
		`.a | to_entrys`:   `did you mean "to_entries"?`,
		`.a | maps(.b)`:    `did you mean "map"?`,
		`def f: 1; .a | g`: "",
		`.a | frobnicate`:  "",
	} {
		_, err := expr.Compile(src)
		if e, ok := problem.As(err); !ok || e.Hint != want {
			t.Errorf("%s: %v, want the hint %q", src, err, want)
		}
	}
}

// TestOtherLanguages shows the hints for what other languages write in another way than jq.
func TestOtherLanguages(t *testing.T) {
	t.Parallel()
	for src, hint := range map[string]string{
		`.a == 'x'`:        `Texts take double quotes: .name == "x".`,
		`.a && .b`:         "Write and: .a and .b.",
		`.a || .b`:         "Write or: .a or .b.",
		`.a||.b`:           "Write or: .a or .b.",
		`!.a`:              "Write not after the negated value: (.a | not).",
		`.a === 1`:         "Compare with == and !=.",
		`.a !== 1`:         "Compare with == and !=.",
		`$.ok`:             "The input is written as a dot: .name, not $.name.",
		`.a == 1 and $[0]`: "The input is written as a dot: .name, not $.name.",
		`.ok == True`:      "Write true.",
		`.a != None`:       "Write null.",
		`len(.a)`:          "Write .items | length.",
		`.a | | .b`:        "",
		`"&&" & .a`:        "",
		`.a ! `:            "Write not after the negated value: (.a | not).",
	} {
		_, err := expr.Compile(src)
		e, ok := problem.As(err)
		if !ok || e.Code != problem.ExpressionInvalid || e.Hint != hint {
			t.Errorf("%s: %v with hint %q, want %q", src, err, e.Hint, hint)
		}
	}
}

func TestFailing(t *testing.T) {
	t.Parallel()
	cause := problem.New(problem.ExpressionInvalid, "it is wrong")
	p := expr.Failing(".x +", cause)
	if p.Source() != ".x +" {
		t.Error("not the program that was given")
	}
	if _, err := p.Eval(nil); err != error(cause) {
		t.Error(err)
	}
}

// TestRaisedValues: what a program raises is data of its failure, with a code of the author's if that is a literal of the program and
// none of the engine's. A value that is too large stays out.
func TestRaisedValues(t *testing.T) {
	t.Parallel()
	state := object(t, `{"id": 7, "code": "FROM_STATE", "text": "busy"}`)
	for _, c := range []struct {
		src, code, raised string
	}{
		{`error("order \(.id) is closed")`, "EXPRESSION_FAILED", `"order 7 is closed"`},
		{`error`, "EXPRESSION_FAILED", `{"code":"FROM_STATE","id":7,"text":"busy"}`},
		{`error(null)`, "EXPRESSION_FAILED", `null`},
		{`.text | halt_error`, "EXPRESSION_FAILED", `"busy"`},
		{`error({code: "NO_STOCK", message: .text, left: 1.50})`, "NO_STOCK", `{"code":"NO_STOCK","left":1.5,"message":"busy"}`},
		{`error({code: .code, message: "m"})`, "EXPRESSION_FAILED", `{"code":"FROM_STATE","message":"m"}`},
		{`error({code: "TIMEOUT", message: "m"})`, "EXPRESSION_FAILED", `{"code":"TIMEOUT","message":"m"}`},
		{`error({code: "no stock", message: "m"})`, "EXPRESSION_FAILED", `{"code":"no stock","message":"m"}`},
		{`error([range(30000)])`, "EXPRESSION_FAILED", ``},
		{`.id | .x`, "EXPRESSION_FAILED", ``},
	} {
		p, err := expr.Compile(c.src)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Eval(state)
		e, ok := problem.As(err)
		if !ok || string(e.Code) != c.code {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		got := ""
		if v, ok := e.Data["raised"]; ok {
			got = string(jsonvalue.Canonical(v))
		}
		if got != c.raised {
			t.Errorf("%s raised %s, want %s", c.src, got, c.raised)
		}
	}
}
