package expr_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestRegularExpressionsOfOniguruma: look-around, back-references, long repeats, Unicode's classes and all of jq's flags.
func TestRegularExpressionsOfOniguruma(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ program, state, result string }{
		{`.|test("^\\w+$")`, `"é"`, `true`},
		{`.|test("^\\W$")`, `"é"`, `false`},
		{`[.|match("\\w+";"g").string]`, `"día de añil, ß_1"`, `["día","de","añil","ß_1"]`},
		{`[.|scan("[^\\W\\d_]+")]`, `"día1 _x٣y"`, `["día","x","y"]`},
		{`[.|match("[\\W_](?=[\\D])";"g").offset]`, `"a_é é"`, `[1,3]`},
		{`[.|scan("[\\S]")]`, "\"a\u00a0b é\"", `["a","b","é"]`},
		{`[.|scan("[[:upper:]][[:^upper:]]+")]`, `"ÉtéÜber"`, `["Été","Über"]`},
		{`[.|scan("[]a]+")]`, `"xa]]"`, `["a]]"]`},
		{`[.|scan("\\h+")]`, `"é 1fG"`, `["1f"]`},
		{`[.|match("(?<=é)(?<n>.)(?=c)";"g") | .offset, .length, .captures[0].name, .captures[0].offset]`, `"aéXc"`, `[2,1,"n",2]`},
		{`gsub("(?<=\\d)(?=(?:\\d{3})+\\b)";",")`, `"1234567 x 1234"`, `"1,234,567 x 1,234"`},
		{`capture("(?<q>[\"'])(?<s>.*?)\\k<q>")`, `"x \"it's\" y"`, `{"q":"\"","s":"it's"}`},
		{`[splits("(?<=[.!?])\\s+(?=[A-ZÉ])")]`, `"One. Two! Étage? four. Five"`, `["One.","Two!","Étage? four.","Five"]`},
		{`sub("(?<a>\\w)(?!\\w)";"<\(.a)>";"g")`, `"añ bé"`, `"a<ñ> b<é>"`},
		{`[match("a++b|(c)?(?=d)";"g") | [.offset,.length,.captures[0].offset]]`, `"aabd"`, `[[0,3,-1],[3,0,-1]]`},
		{`test("^[A-Z]{1,2000}$")`, `"ABC"`, `true`},
		{`test("a # letter\n b\\ [ #]";"x")`, `"ab #"`, `true`},
		{`test("a.b";"p"), test("a.b";"s"), test("a.b")`, `"a\nb"`, `[true,false,false]`},
		{`[match("a*?";"gn").string]`, `"aa"`, `[]`},
		{`[match("a*";"n").offset]`, `"baa"`, `[1]`},
		{`[match("a|ab|abc";"gl").string]`, `"abcab"`, `["abc","ab"]`},
		{`test("a$"), test("a\\z"), test("a\\Z"), test("(?m)^a$")`, `"b\na\n"`, `[true,false,true,true]`},
		{`test("^a")`, `"b\na"`, `false`},
		{`[match("\\bé\\B.";"g").offset]`, `"éa aéa éb"`, `[0,7]`},
		{`test("É";"i")`, `"é"`, `true`},
		{`test("(?=É)";"i")`, `"é"`, `true`},
		{`test("a";"z")`, `"a"`, `error`},
		{`test("(?=a")`, `"a"`, `error`},
		{`test("(?=a)";"l")`, `"a"`, `error`},
		{`test("` + strings.Repeat("(?:ab|a", 50) + strings.Repeat(")", 50) + `(?!c)")`, `"a"`, `error`},
	} {
		program := c.program
		if strings.HasPrefix(c.result, "[") && !strings.HasPrefix(program, "[") {
			program = "[" + program + "]"
		}
		check(t, strings.Replace(".x | "+program, ".x | .|", ".x | ", 1), `{"x":`+strings.ReplaceAll(c.state, "\n", `\n`)+`}`, c.result)
	}
}

// TestRegularExpressionsEnd: what would take for ever ends soon, at the program's limit, wherever it runs.
func TestRegularExpressionsEnd(t *testing.T) {
	t.Parallel()
	limits := expr.DefaultLimits()
	limits.Cost /= 16 // under the race detector the whole takes minutes
	for _, program := range []string{
		`("ab" * 40) + "!" | test("^(?=a)(?:ab|a|b)*$")`,
		`"" | test("(?:(?:$|\\z){40})*(?=c)")`,
		`("a" * 2000) | test("(a*)(a*)(a*)\\1\\2\\3b")`,
		`[range(100000) | "é" + tostring | test("\\w+" + .)] | length`,
		`("(?=a)" * 1000) as $re | [range(600) | "a" | test($re + tostring)] | length`,
		`("a" * 3e6) | test("(?=b)c")`,
		`[range(300) | ("a" * 1000) | gsub("(?<=b)"; "")] | length`,
	} {
		p, err := expr.Compile(program)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = p.EvalLimits(map[string]any{}, limits)
		took := time.Since(began)
		if t.Logf("%s: %v, %v", program, took, err); took > 30*time.Second || err != nil && !errors.Is(err, problem.ExpressionLimit) {
			t.Errorf("%s: %v after %v", program, err, took)
		}
	}
	// So many classes would be made of a short text.
	p, err := expr.Compile(`"é" | test("[" + "\\W" * 100000 + "]")`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.EvalAt(map[string]any{}, expr.Env{}); err == nil || !strings.Contains(err.Error(), "too many classes") {
		t.Errorf("%v", err)
	}
}
