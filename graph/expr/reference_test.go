package expr_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// agreement are programs that have the same result here and in the reference (spec: definition, 14.3).
var agreement = []struct{ program, state, result string }{
	{`.a.b`, `{"a":{"b":1}}`, `1`},
	{`.zz`, `{"a":1}`, `null`},
	{`.intent == "billing" and .confidence > 0.8`, `{"intent":"billing","confidence":0.9}`, `true`},
	{`.x > 0.8`, `{"x":null}`, `false`},
	{`.x // "d"`, `{"x":false}`, `"d"`},
	{`empty`, `{}`, `null`},
	{`.x[]`, `{"x":[1,2]}`, `[1,2]`},
	{`.x`, `{"x":[1,2]}`, `[1,2]`},
	{`[.x[]?]`, `{"x":5}`, `[]`},
	{`"a" < "B"`, `{}`, `false`},
	{`.x|sort`, `{"x":[{"a":1},"s",1,null,true,false,[1]]}`, `[null,false,true,1,"s",[1],{"a":1}]`},
	{`.x|group_by(.a)`, `{"x":[{"a":2},{"a":1},{"a":2}]}`, `[[{"a":1}],[{"a":2},{"a":2}]]`},
	{`.x|unique`, `{"x":[3,1,3]}`, `[1,3]`},
	{`[limit(0;1,2)]`, `{}`, `[]`},
	{`reduce .x[] as $i (0;.+$i)`, `{"x":[1,2,3]}`, `6`},
	{`[foreach .x[] as $i (0;.+$i;[$i,.])]`, `{"x":[1,2,3]}`, `[[1,1],[2,3],[3,6]]`},
	{`[label $out|.x[]|if .==2 then break $out else . end]`, `{"x":[1,2,3]}`, `[1]`},
	{`.x as [$a] ?// $a | $a`, `{"x":[1]}`, `1`},
	{`if .x then 1 end`, `{"x":false}`, `{"x":false}`},
	{`try error({a:1}) catch .a`, `{"x":5}`, `1`},
	{`.s|test("b";"i")`, `{"s":"ABC"}`, `true`},
	{`.s|capture("(?<k>\\w)=(?<v>\\w)")`, `{"s":"k=v"}`, `{"k":"k","v":"v"}`},
	{`.s|gsub("(?<d>\\d)";"<\(.d)>")`, `{"s":"a1b2"}`, `"a<1>b<2>"`},
	{`[.s|scan("\\d+")]`, `{"s":"a1b22"}`, `["1","22"]`},
	{`[.s|splits(", *")]`, `{"s":"a, b"}`, `["a","b"]`},
	{`.s|length`, `{"s":"a😀é"}`, `3`},
	{`.s[1:2]`, `{"s":"a😀é"}`, `"😀"`},
	{`.s|ascii_downcase`, `{"s":"ÀB"}`, `"Àb"`},
	{`.s|ltrimstr("a")`, `{"s":"abc"}`, `"bc"`},
	{`.s|trimstr("a")`, `{"s":"aba"}`, `"b"`},
	{`.s|trim`, `{"s":"  x "}`, `"x"`},
	{`.n|abs`, `{"n":-3}`, `3`},
	{`pick(.a.b)`, `{"a":{"b":1,"c":2}}`, `{"a":{"b":1}}`},
	{`.x|@csv`, `{"x":["a\"b"]}`, `"\"a\"\"b\""`},
	{`.s|@uri`, `{"s":"a b/ü~!"}`, `"a%20b%2F%C3%BC~%21"`},
	{`.s|@html`, `{"s":"<a href='x'>\"&"}`, `"&lt;a href=&apos;x&apos;&gt;&quot;&amp;"`},
	{`.s|@sh`, `{"s":"it's"}`, `"'it'\\''s'"`},
	{`.s|@base64`, `{"s":"hi"}`, `"aGk="`},
	{`.n|todate`, `{"n":1700000000}`, `"2023-11-14T22:13:20Z"`},
	{`.s|strptime("%Y-%m-%d")`, `{"s":"2023-11-14"}`, `[2023,10,14,0,0,0,2,317]`},
	{`.a*{x:{z:2}}`, `{"a":{"x":{"y":1}}}`, `{"x":{"y":1,"z":2}}`},
	{`.x|join("-")`, `{"x":[1,null,"a",true]}`, `"1--a-true"`},
	{`.x|(.[]|=if .==2 then empty else . end)`, `{"x":[1,2,3,4]}`, `[1,3,4]`},
	{`walk(if type=="number" then .+1 else . end)`, `{"x":{"a":[1,2]}}`, `{"x":{"a":[2,3]}}`},
	{`.x|from_entries`, `{"x":[{"name":"a","v":1},{"k":"b","Value":2},{"Key":"c","value":false},{"key":null,"value":3},{"key":false}]}`, "error"},
	{`getpath(["a","b"])`, `{"a":null}`, `null`},
	{`(1/3)|tojson`, `{}`, `"0.3333333333333333"`},
	{`(0.1+0.2)|tojson`, `{}`, `"0.30000000000000004"`},
	{`infinite`, `{}`, `1.7976931348623157e+308`},
	{`nan < nan`, `{}`, `true`},
	{`.x|contains(["foo"])`, `{"x":["foobar"]}`, `true`},
	{`.x|IN(1,2)`, `{"x":2}`, `true`},
	{`[[.x] as {a:$a} ?// [$a] | $a]`, `{"x":1}`, `[1]`},
	{`.s|test("foo(?=bar)")`, `{"s":"foobar"}`, `true`},
	{`.s|test("(ab)\\1")`, `{"s":"abab"}`, `true`},
	{`.s|sub("(?<=a)b";"X")`, `{"s":"ab"}`, `"aX"`},
	{`.s|test("(?>a+)a")`, `{"s":"aaa"}`, `false`},
	{`.s|test("\\w")`, `{"s":"é"}`, `true`},
	{`.s|test("\\d")`, `{"s":"٣"}`, `true`},
	{`.s|test("\\s")`, "{\"s\":\"\u00a0\"}", `true`},
	{`.s|test("^[[:alpha:]]")`, `{"s":"é1"}`, `true`},
	{`[.s|match("\\b.";"g").string]`, `{"s":"é a"}`, `["é"," ","a"]`},
	{`.s|test("a$")`, `{"s":"a\n"}`, `true`},
	{`.s|test("a b";"x")`, `{"s":"ab"}`, `true`},
	{`.s|test("a.b";"s")`, `{"s":"a\nb"}`, `false`},
	{`[.s|match("";"gn")]|length`, `{"s":"abc"}`, `0`},
	{`[.s|match("a|ab";"gl").string]`, `{"s":"abab"}`, `["ab","ab"]`},
	{`.s|test("a{1,1001}")`, `{"s":"a"}`, `true`},
}

// differences are programs that have not: the reference keeps the order of members and the text of number literals
// (spec: definition, 14.3). The result is this engine's; "error" is an evaluation that
// fails, "invalid" a program that does not compile.
var differences = []struct{ program, state, reference, result string }{
	{`[.[]]`, `{"b":1,"a":2}`, `[1,2]`, `[2,1]`},
	{`to_entries|map(.key)`, `{"b":1,"a":2}`, `["b","a"]`, `["a","b"]`},
	{`first(.[])`, `{"b":1,"a":2}`, `1`, `2`},
	{`.x|add`, `{"x":{"b":"B","a":"A"}}`, `"BA"`, `"AB"`},
	{`[paths]`, `{"b":{"z":1},"a":2}`, `[["b"],["b","z"],["a"]]`, `[["a"],["b"],["b","z"]]`},
	{`keys_unsorted`, `{"b":1,"a":2}`, `["b","a"]`, `["a","b"]`},
	{`tojson`, `{"b":1,"a":2}`, `"{\"b\":1,\"a\":2}"`, `"{\"a\":2,\"b\":1}"`},
	{`{z:1,a:2}|tojson`, `{}`, `"{\"z\":1,\"a\":2}"`, `"{\"a\":2,\"z\":1}"`},
	{`"v=\(.)"`, `{"b":1,"a":2}`, `"v={\"b\":1,\"a\":2}"`, `"v={\"a\":2,\"b\":1}"`},
	{`.x|@json`, `{"x":{"b":1,"a":2}}`, `"{\"b\":1,\"a\":2}"`, `"{\"a\":2,\"b\":1}"`},
	{`1.0|tojson`, `{}`, `"1.0"`, `"1"`},
	{`1.10|tostring`, `{}`, `"1.10"`, `"1.1"`},
	{`3.141592653589793238|tojson`, `{}`, `"3.141592653589793238"`, `"3.141592653589793"`},
	{`1e17|tojson`, `{}`, `"1E+17"`, `"100000000000000000"`},
	{`1e-7|tojson`, `{}`, `"1E-7"`, `"1e-7"`},
	{`12345678901234567890`, `{}`, `12345678901234567000`, `12345678901234567000`},
	{`9007199254740993*3`, `{}`, `27021597764222976`, `27021597764222976`},
	{`.s|fromjson`, `{"s":"12345678901234567890"}`, `12345678901234567000`, `12345678901234567000`},
	{`1e1000`, `{}`, `null`, `1.7976931348623157e+308`},
	{`.n|tojson`, `{"n":-0.0}`, `"0"`, `"0"`},
	{`.s|fromjson`, `{"s":"nan"}`, `null`, `error`},
	{`try .x.y catch .`, `{"x":5}`, `"Cannot index number with string \"y\""`, `"expected an object but got: number (5)"`},
	{`.s|test("ß";"i")`, `{"s":"SS"}`, `true`, `false`},
	{`.s|capture("(?P<n>a)")`, `{"s":"a"}`, `error`, `{"n":"a"}`},
	{`.s|fromdate`, `{"s":"2023-11-14T22:13:20+01:00"}`, `error`, `1699996400`},
	{`.n|strftime("%j %U %e %Z %s")`, `{"n":1425599507}`, `error`, `"064 09  5 UTC 1425599507"`},
	{`.x|mktime`, `{"x":[2015,2,5,23,51,47.7,4,63]}`, `1425599507`, `1425599507.7`},
	{`.n|todate`, `{"n":1000000000000.0}`, `"+33658-09-27T01:46:40Z"`, `"33658-09-27T01:46:40Z"`},
	{`[inputs]`, `{}`, `[]`, `[]`},
	{`input_line_number`, `{}`, `0`, `0`},
	{`$__loc__`, `{}`, `{"file":"<top-level>","line":1}`, `invalid`},
	{`have_decnum`, `{}`, `true`, `false`},
	{`.x|debug`, `{}`, `error`, `invalid`},
	{`1,halt,2`, `{}`, `1`, `1`},
	{`env|keys|length > 0`, `{}`, `true`, `false`},
	{`.n|gamma`, `{"n":5}`, `error`, `24`},
	{`reduce range(300) as $i (0;[.])|tojson|length`, `{}`, `533`, `601`},
	{`.s|tojson`, `{"s":"\ud800"}`, `error`, `"\"�\""`},
	{`.s|@base64d`, `{"s":"!!"}`, `error`, `error`},
}

func TestAgreementWithReference(t *testing.T) {
	t.Parallel()
	for _, row := range agreement {
		t.Run(row.program, func(t *testing.T) {
			t.Parallel()
			check(t, row.program, row.state, row.result)
		})
	}
}

func TestDifferencesFromReference(t *testing.T) {
	t.Parallel()
	for _, row := range differences {
		t.Run(row.program, func(t *testing.T) {
			t.Parallel()
			check(t, row.program, row.state, row.result)
		})
	}
}

// check compares a result, as canonical text, or "error", or "invalid".
func check(t *testing.T, program, state, want string) {
	t.Helper()
	p, err := expr.Compile(program)
	if err != nil {
		if e, ok := problem.As(err); !ok || e.Code != problem.ExpressionInvalid {
			t.Errorf("the error of a program that does not compile is %v", err)
		}
		if want != "invalid" {
			t.Errorf("%v, want %s", err, want)
		}
		return
	}
	before := object(t, state)
	got, err := p.Eval(before)
	if err != nil {
		if e, ok := problem.As(err); !ok || e.Code != problem.ExpressionFailed {
			t.Errorf("the error of an evaluation is %v", err)
		}
		if want != "error" {
			t.Errorf("%v, want %s", err, want)
		}
		return
	}
	if text := string(jsonvalue.Canonical(got)); text != want {
		t.Errorf("%s, want %s", text, want)
	}
	if !jsonvalue.Equal(before, object(t, state)) {
		t.Errorf("the state was changed: %s", jsonvalue.Canonical(before))
	}
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	v, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatalf("the state %s: %v", text, err)
	}
	return v.(map[string]any)
}
