package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// hostile is one input of the corpus: a line for the server, which has the id 1 where it is a call.
type hostile struct {
	name, line string
	// heavy inputs are large, or take long; the long form alone sends them.
	heavy bool
}

// hostileKinds makes the corpus, by kind. Its codes are in testdata/hostile.txt, which -update writes.
func hostileKinds() map[string][]hostile {
	return map[string][]hostile{
		"document": hostileDocuments(), "schema": hostileSchemas(), "jq": hostilePrograms(),
		"arguments": hostileArguments(), "frame": hostileFrames(), "payload": hostilePayloads(),
		"check": hostileChecks(),
	}
}

func times(n int, text string) string { return strings.Repeat(text, n) }

// numbered is a text n times with commas; # stands for the number.
func numbered(n int, text string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(text, "#", fmt.Sprint(i))
	}
	return strings.Join(parts, ",")
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// started is a call that starts a definition, which is JSON or a quoted text.
func started(definition string) string {
	return toolCall(1, "workflow_start", `{"wait_ms":20000,"definition":`+definition+`}`)
}

// walk is a definition of some nodes, one after the other. Each is written as id, type and config.
func walk(schema string, nodes ...string) string {
	list, edges, last := []string{`{"id":"s","type":"start"}`}, []string{`{"source":"__start__","target":"s"}`}, "s"
	for i, n := range nodes {
		id := fmt.Sprintf("n%d", i)
		list = append(list, `{"id":"`+id+`",`+n+`}`)
		edges = append(edges, `{"source":"`+last+`","target":"`+id+`"}`)
		last = id
	}
	return `{"document":{"schema":"s","name":"n","version":"1"},"state_schema":` + schema + `,"nodes":[` + strings.Join(list, ",") +
		`,{"id":"e","type":"end"}],"edges":[` + strings.Join(edges, ",") + `,{"source":"` + last + `","target":"e"}]}`
}

const anySchema = `{"type":"object"}`

func computed(program string) string {
	return walk(anySchema, `"type":"set_state","config":{"assignments":{"x":{"jq":`+quoted(program)+`}}}`)
}

// table makes inputs of names and texts, alternating.
func table(line func(string) string, texts ...string) (list []hostile) {
	for i := 0; i < len(texts); i += 2 {
		list = append(list, hostile{name: texts[i], line: line(texts[i+1]), heavy: len(texts[i+1]) > 200<<10})
	}
	return list
}

func hostileDocuments() []hostile {
	asText := func(text string) string { return started(quoted(text)) }
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(times(10, fmt.Sprintf("*%c,", c-1)), ","))
	}
	list := table(asText,
		"empty", " ", "a word", "x", "nested lists", times(600, "[")+times(600, "]"), "nested objects", times(600, `{"a":`)+"1"+times(600, "}"),
		"100,000 levels", times(100_000, "["), "a key of 100 KB", `{"`+times(100_000, "k")+`":1}`, "duplicate members", `{"a":1,"a":2}`,
		"__proto__", `{"__proto__":{}}`, "a null character", "{\"a\":\"\x00\"}", "an escaped null character", `{"a":"\u0000"}`, "a byte order mark", "\ufeff{}",
		"a lone surrogate", `{"a":"\ud800"}`, "1e400", `{"a":1e400}`, "400 digits", `{"a":`+times(400, "9")+`}`, "an inexact integer", `{"a":9007199254740993}`,
		"NaN", `{"a":NaN}`, "trailing comma", `{"a":1,}`, "two values", `{} {}`, "a comment", `{} // x`, "not closed", `{"a":`,
		"many errors", `{`+numbered(2000, `"m#":0`)+`}`, "190,000 members", `{`+numbered(190_000, `"m#":0`)+`}`, "a million zeros", `{"a":[`+numbered(1_000_000, `0`)+`]}`,
		"a text of 7 MB", `{"a":"`+times(7<<20, "x")+`"}`, "9 MB", `{"a":"`+times(9<<20, "x")+`"}`,
		"yaml: aliases of aliases", bomb, "yaml: an alias in itself", "a: &a [*a]", "yaml: 100 anchors", "a:\n"+strings.ReplaceAll(numbered(100, "- &a# x"), ",", "\n"),
		"yaml: 100,000 anchors", "a:\n"+strings.ReplaceAll(numbered(100_000, "- &a# x"), ",", "\n"), "yaml: an unknown alias", "a: *b", "yaml: a merge key", "a: {<<: {b: 1}}",
		"yaml: its own tag", "a: !x {}", "yaml: binary", "a: !!binary aGk=", "yaml: two documents", "a: 1\n---\nb: 2", "yaml: nested", times(12_000, "[")+":", "yaml: dashes", ":\n"+times(100_000, "- "),
		"yaml: octal", "a: 017", "yaml: infinity", "a: .inf", "yaml: a tab", "a:\n\tb: 1", "yaml: duplicate members", "a: 1\na: 2", "yaml: a list as a key", "? [a]\n: 1", "yaml: 300,000 values", "a:\n"+times(300_000, "- x\n"),
	)
	host := `"type":"step","config":{"handler":"h"}`
	graphs := table(started,
		"a list", `[]`, "null", `null`, "a number", `1`, "a call cut short", walk(anySchema)[:80]+`"`, "an unknown type", walk(anySchema, `"type":"exec","config":{"cmd":"rm"}`),
		"a node without config", walk(anySchema, `"type":"step"`), "5,000 nodes", walk(anySchema, strings.Split(strings.TrimSuffix(times(5000, host+"|"), "|"), "|")...),
		"a loop", walk(anySchema, `"type":"switch","config":{"cases":[{"when":"true","target":"n0"}],"default":"e"}`),
		"a workflow that starts itself", walk(anySchema, `"type":"subworkflow","config":{"workflow_ref":"n","input_mapping":{}}`),
		"a template of 100 KB", walk(anySchema, `"type":"llm_call","config":{"model":"m","user_prompt":"`+times(20_000, "{{.a}}")+`"}`),
		"3,000 programs", walk(anySchema, `"type":"set_state","config":{"assignments":{`+numbered(3000, `"a#":{"jq":".a"}`)+`}}`),
		"20,000 programs", walk(anySchema, `"type":"set_state","config":{"assignments":{`+numbered(20_000, `"a#":{"jq":".a + #"}`)+`}}`),
		"200 long programs in a node", walk(anySchema, `"type":"set_state","config":{"assignments":{`+numbered(200, `"a#":{"jq":"last(range(1500000))"}`)+`}}`),
		"200 long cases of a switch", walk(anySchema, `"type":"switch","config":{"default":"e","cases":[`+numbered(200, `{"when":"last(range(1500000)) == 1","target":"e"}`)+`]}`),
		"a huge id", `{"nodes":[{"id":"`+times(100_000, "i")+`","type":"start"}]}`, "an id like a path", walk(anySchema, `"type":"subworkflow","config":{"workflow_ref":"../../etc/passwd","input_mapping":{}}`),
		"a wait of ages", walk(anySchema, `"type":"wait","config":{"kind":"duration","duration_ms":1e300}`), "a negative wait", walk(anySchema, `"type":"wait","config":{"kind":"duration","duration_ms":-1}`),
		"attempts without end", walk(anySchema, `"type":"step","config":{"handler":"h"},"retry":{"max_attempts":1e9}`),
	)
	branches := func(n int) string {
		return `{"document":{"schema":"s","name":"n","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},{"id":"p","type":"parallel","config":{"join":"all","branches":[` +
			numbered(n, `{"name":"b#","entry":"n#"}`) + `]}},` + numbered(n, `{"id":"n#","type":"step","config":{"handler":"h"}}`) + `,{"id":"e","type":"end"}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"p"},{"source":"p","target":"e"},` +
			numbered(n, `{"source":"n#","target":"e"}`) + `]}`
	}
	asking := func(nodes, members int) hostile {
		ask := `"type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object","properties":{` + numbered(members, `"p#":true`) + `}}}`
		return hostile{fmt.Sprintf("%d schemas of %d members", nodes, members), started(walk(anySchema, strings.Split(strings.TrimSuffix(times(nodes, ask+"|"), "|"), "|")...)), true}
	}
	graphs = append(graphs, asking(30, 4_900), asking(4_000, 20))
	return append(append(list, graphs...), hostile{"10,000 branches", started(branches(10_000)), true}, hostile{"500 branches", started(branches(500)), false})
}

func hostileSchemas() []hostile {
	return table(func(schema string) string { return started(walk(schema)) },
		"a text", `"x"`, "false", `false`, "an empty enum", `{"enum":[]}`, "an enum of 50,000", `{"properties":{"a":{"enum":[`+numbered(50_000, `"#"`)+`]}}}`,
		"an enum of 1,000", `{"properties":{"a":{"enum":[`+numbered(1_000, `"#"`)+`]}}}`, "a $ref to itself", `{"$ref":"#"}`, "a circle of $refs", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"a $ref to a file", `{"$ref":"file:///etc/passwd"}`, "a $ref to the network", `{"$ref":"http://127.0.0.1:1/x"}`, "a $ref to nothing", `{"$ref":"#/$defs/none"}`,
		"$refs that multiply", `{"$defs":{`+numbered(40, `"d#":{"allOf":[{"$ref":"#/$defs/x"},{"$ref":"#/$defs/x"}]}`)+`,"x":{}}}`,
		"20,000 subschemas", `{"properties":{`+numbered(20_000, `"p#":{}`)+`}}`, "nested", times(300, `{"properties":{"a":`)+"{}"+times(300, "}}"), "another dialect", `{"$schema":"http://json-schema.org/draft-04/schema#"}`,
		"a wrong keyword", `{"type":"strnig"}`, "a negative length", `{"properties":{"a":{"minLength":-1}}}`, "a length of 1e300", `{"properties":{"a":{"minLength":1e300}}}`,
		"a pattern that is none", `{"properties":{"a":{"pattern":"("}}}`, "a catastrophic pattern", `{"properties":{"a":{"pattern":"^(?=(a+)+b)"}}}`, "a large pattern", `{"properties":{"a":{"pattern":"`+times(500, "x{1000}")+`"}}}`,
		"5,000 patterns", `{"patternProperties":{`+numbered(5_000, `"^(a|#){1,900}$":{}`)+`}}`, "nested groups", `{"properties":{"a":{"pattern":"`+times(200, "(?=")+times(200, ")")+`"}}}`,
		"50,000 required members", `{"required":[`+numbered(50_000, `"#"`)+`]}`, "20,000 true subschemas", `{"properties":{`+numbered(20_000, `"p#":true`)+`}}`,
		"20,000 subschemas behind a $ref", `{"$ref":"#/x","x":{"properties":{`+numbered(20_000, `"p#":{}`)+`}}}`, "a custom reducer", `{"properties":{"a":{"reducer":"custom"}}}`, "multipleOf 0", `{"properties":{"a":{"multipleOf":0}}}`,
	)
}

func hostilePrograms() []hostile {
	list := table(func(program string) string { return started(computed(program)) })
	for i, p := range []string{
		"def f: f; f", "def f: 1+f; f", "def f: [f]; f", "repeat(.)", "last(repeat(1))", "[repeat(1)]", "range(1e12)", "[range(1e9)]", "last(range(100000000))", "[limit(1e9; repeat(0))]",
		"input", "inputs", "[inputs]", "input_line_number", "$__loc__", "$__prog_args", "env", "$ENV", "$ENV.PATH", "input_filename", "debug", "stderr", "halt", `"x"|halt_error`, `include "a"; 1`, `import "/etc/passwd" as a; 1`,
		`import "x" as $x; $x`, "getpath([1e9])", `getpath(["a",0,"b"])`, "setpath([100000000];1)", ".[100000000]=1", "[][1e18]=1", ".[-1]=1", "paths", "[paths]|length", "[..]", "tojson|fromjson", "@base64d", `"%%%"|@base64d`,
		`"x"*1000000000`, `"x"*-1`, `("x"*1000)*1000*1000*1000`, "ltrimstr(1)", "ascii", "implode", "[1114112]|implode", "[55296]|implode", `"\ud800"`, "1e400", "-1e400", "nan", "infinite", "[nan]|sort", "9007199254740993",
		`("a"*30)|test("^(a+)+$b")`, `("a"*1000)|test("(a+)+b")`, `"x"|test("(")`, `"x"|test("x{1001}")`, `"a"|test("\\1(a)")`, `"x"|sub("";"y";"g")`, `[("a"*100)|splits("")]|length`, `"x"|ascii_downcase|explode|.[1e9]`,
		"splits(1)", "error", `error(null)`, `error({a:1})`, "try error catch .", "label $f | break $f", "break $x", "limit(-1; 1)", "first(empty)", "nth(-1; 1)", "until(false; .)", "while(true; .)", "recurse(.)", "[recurse]|length",
		"env|keys", "now", "localtime", "mktime", `"x"|strptime("%Y")`, "1e300|todate", "1e300|strftime(\"%Y\")", "splits", "tojson", "@sh", "@csv", `[[[]]]|@csv`, "@json", "@text", "@uri", "@html", "input|input", "$x", "foo", "foo(1)",
		".a.b.c.d", ".[\"a\"", "1 +", "", " ", "\x00", "1\x00 not jq", "#", "1 as $x | 2 as $y | [$x,$y,$z]", "reduce range(600) as $i (0;[.])", "reduce range(20) as $i (\"x\"; .+.)", "foreach range(1e9) as $i (0; .+1)", "getpath([range(1000)])", "delpaths([[1e9]])",
		"to_entries", "with_entries(.value)", "[.[]?]", "..|..|..", "limit(10; def f: .,f; f)", "group_by(.)", "min_by(.a)", "combinations", "[[range(50)],[range(50)]]|[combinations]|length", "tostream", "fromstream(1)", "truncate_stream(1)", "getpath(1)", "splits(\"(\")", "ascii(1)", "modulemeta", "get_search_list", "input_line_number", "$__loc__|.file", "ltrimstr(\"x\")", "significand", "gamma", "1/0", "1%0", "5%0.1", "[1]-1", "{}+[]", "{(1):2}", "{a:1}|.[0]", "@base32d", "\"a\"|@base32d",
		"def f: f" + times(1000, ",1") + "; f", "def f: " + times(200, "try (") + "f" + times(200, ")") + "; f", "reduce range(40000) as $i (0;[.]) | walk(.)|length", "reduce range(25) as $i (0;[.,.])",
		"1 as $v | def g: if . > 3000 then (last(range(200000)|$v)) else (.+1 | first(g)) end; 0|g", "last(repeat(." + times(1000, ",.") + "))",
	} {
		list = append(list, hostile{name: fmt.Sprintf("%03d %q", i, p[:min(len(p), 100)]), line: started(computed(p))})
	}
	return list
}

func hostileArguments() (list []hostile) {
	values := table(func(s string) string { return s },
		"a number", `1`, "a fraction", `0.5`, "negative", `-1`, "1e9", `1e9`, "1e400", `1e400`, "a text", `"x"`, "an empty text", `""`, "blank", `"  "`, "null", `null`, "true", `true`, "a list", `[]`, "an object", `{}`,
		"a path", `"../../etc/passwd"`, "control characters", `"a\u0000\u001b[2J"`, "an id of 100 KB", `"`+times(100_000, "i")+`"`, "a lone surrogate", `"\udfff"`)
	for _, a := range []struct{ tool, argument, rest string }{
		{"workflow_start", "definition", ``}, {"workflow_start", "execution_id", `,"definition":` + walk(anySchema)}, {"workflow_start", "wait_ms", `,"definition":` + walk(anySchema)},
		{"workflow_start", "input", `,"definition":` + walk(anySchema)}, {"workflow_start", "definition_ref", ``}, {"workflow_start", "unknown", ``},
		{"workflow_status", "execution_id", ``}, {"workflow_status", "wait_ms", `,"execution_id":"bystander"`}, {"workflow_status", "since_seq", `,"execution_id":"bystander"`},
		{"workflow_list", "limit", ``}, {"workflow_list", "cursor", ``}, {"workflow_cancel", "execution_id", ``}, {"workflow_signal", "signal_name", `,"execution_id":"bystander"`},
		{"workflow_submit_activity", "outcome", `,"execution_id":"bystander","node_id":"w"`}, {"workflow_submit_activity", "parallel_span", `,"execution_id":"bystander","node_id":"w","outcome":{"ok":true}`},
		{"workflow_resume", "resume_payload", `,"execution_id":"bystander"`},
	} {
		for _, v := range values {
			list = append(list, hostile{name: a.tool + " " + a.argument + ": " + v.name, line: toolCall(1, a.tool, `{"`+a.argument+`":`+v.line+a.rest+`}`)})
		}
	}
	return list
}

func hostileFrames() []hostile {
	large := func(method, args string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"name":"workflow_status","arguments":` + args + `}}`
	}
	return table(func(line string) string { return line },
		"15 MB", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"`+times(15<<20, "x")+`"}}`, "15 MB of brackets", times(15<<20, "["), "15 MB of arguments", large("tools/call", `{"execution_id":"bystander","a":"`+times(15<<20, "x")+`"}`),
		"15 MB of numbers", large("tools/call", `{"execution_id":"bystander","a":[`+times(7<<20, "1,")+`1]}`), "15 MB of objects", large("tools/call", `{"execution_id":"bystander","a":[`+times(2<<20, `{"":0},`)+`1]}`),
		"15 MB of escaped quotes", large("tools/call", `{"execution_id":"bystander","a":"`+times(15<<19, `\"`)+`"}`), "15 MB of short texts", large("tools/call", `{"execution_id":"elsewhere","a":[`+times(15<<18, `"x",`)+`1]}`),
		"15 MB of brackets in arguments", large("tools/call", `{"execution_id":"bystander","a":`+times(15<<20, "[")+`}`), "15 MB of short members", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{`+times(5<<19, `"":0,`)+`}}`,
		"15 MB of arguments as text", large("tools/call", quoted(`{"execution_id":"bystander","a":"`+times(7<<19, `\\`)+`"}`)),
		"15 MB of arguments of a ping", large("ping", `"`+times(15<<20, "x")+`"`), "15 MB that are not closed", large("tools/call", `{"a":"`+times(15<<20, "x"))[:15<<20], "15 MB of arguments that are not JSON", large("tools/call", `{"a":[`+times(7<<20, "1,")+`,]}`),
		"not JSON", `hello`, "half an object", `{"jsonrpc":"2.0","id":1`, "a list of calls", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "an empty list", `[]`, "a number", `1`, "null", `null`, "no version", `{"id":1,"method":"ping"}`,
		"version 1", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, "an unknown method", `{"jsonrpc":"2.0","id":1,"method":"x/y"}`, "a method of 100 KB", `{"jsonrpc":"2.0","id":1,"method":"`+times(100_000, "m")+`"}`, "a method that is a number", `{"jsonrpc":"2.0","id":1,"method":1}`,
		"an id that is an object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, "an answer that nobody asked for", `{"jsonrpc":"2.0","id":1,"result":{}}`, "parameters that are a list", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`,
		"an unknown tool", toolCall(1, "rm", `{}`), "a tool without a name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, "arguments that are a list", toolCall(1, "workflow_list", `[]`), "a notification that nobody knows", `{"jsonrpc":"2.0","method":"notifications/x"}`,
		"nested 20,000 deep", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":`+times(20_000, "[")+times(20_000, "]")+`}}`, "bytes that are not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":\"\xff\xfe\"}}", "a null character", "\x00",
		"an empty line", "", "white space", " \t ", "duplicate members", `{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}`, "a resource like a path", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}`, "an unknown resource", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"awp://../x"}}`,
		"1,000 notifications", strings.TrimSuffix(times(1000, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`+"\n"), "\n"), "17 MB", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"`+times(17<<20, "x")+`"}}`,
	)
}

// hostilePayloads answer the bystander, whose node n0 is a step for its host: one that is taken by mistake ends it.
func hostilePayloads() []hostile {
	return table(func(result string) string {
		return toolCall(1, "workflow_submit_activity", `{"execution_id":"bystander","node_id":"n0","outcome":{"ok":true,"result":`+result+`}}`)
	}, "nested 9,000 deep", `{"a":`+times(9_000, "[")+times(9_000, "]")+`}`, "3 MB", `{"a":"`+times(3<<20, "x")+`"}`, "not UTF-8", "{\"a\":\"\xff\"}", "a lone surrogate", `{"a":"\ud800"}`,
		"1e400", `{"a":1e400}`, "400 digits", `{"a":`+times(400, "9")+`}`, "an inexact integer", `{"a":9007199254740993}`, "a list", `[]`, "a text", `"x"`, "a number", `1`, "false", `false`, "a million elements", `{"a":[`+numbered(1_000_000, "10")+`]}`)
}

// hostileChecks are inputs whose check against a state_schema would take long, or much memory. Each member a has the schema that it is held against.
func hostileChecks() []hostile {
	checks := func(name, schema, value string) hostile {
		definition := walk(`{"type":"object","properties":{"a":` + schema + `}}`)
		return hostile{name, toolCall(1, "workflow_start", `{"wait_ms":20000,"definition":`+definition+`,"input":{"a":`+value+`}}`), len(value) > 200<<10}
	}
	list := func(n int, element string) string { return `[` + strings.TrimSuffix(times(n, element+","), ",") + `]` }
	return []hostile{
		checks("an enum of 4,000 lists over 4,000", `{"items":{"enum":[`+numbered(4000, `[#,#,#,#,#]`)+`]}}`, list(4000, "[-1,-1,-1,-1,-1]")),
		checks("an enum of 50,000 texts over 200,000", `{"items":{"enum":[`+numbered(50_000, `"k#"`)+`]}}`, list(200_000, `"z"`)),
		checks("5,000 required names of 5,000 objects", `{"items":{"required":[`+numbered(5000, `"k#"`)+`]}}`, list(5000, "{}")),
		checks("5,000 names that are not required of 20,000 objects", `{"items":{"not":{"required":[`+numbered(5000, `"k#"`)+`]}}}`, list(20_000, "{}")),
		checks("150 that fail at 20,000 elements", `{"items":{"allOf":`+list(50, `{"type":"string","minLength":2},{"type":"null"},{"const":1}`)+`}}`, list(20_000, "{}")),
		checks("contains 900 times 900", `{"items":{"contains":{"const":1}}}`, list(900, list(900, "0"))),
		checks("250,000 integers that are unique", `{"uniqueItems":true}`, `[`+numbered(250_000, `#`)+`]`),
		checks("2,000 unique lists that begin alike", `{"uniqueItems":true}`, `[`+numbered(2000, strings.TrimSuffix(list(400, "0"), "]")+`,#]`)+`]`),
		checks("300 patterns of 700 members", `{"patternProperties":{`+numbered(300, `"^(a|b#)":{}`)+`}}`, `{`+numbered(700, `"a#":1`)+`}`),
		checks("300 patterns of 700 lists", `{"patternProperties":{`+numbered(300, `"^(a|b#)":{"items":{"minimum":1}}`)+`}}`, `{`+numbered(700, `"a#":`+list(20, "1"))+`}`),
		checks("a wide pattern over long texts", `{"items":{"pattern":"(x+x+){1,20}y"}}`, list(50, `"`+times(20_000, "x")+`"`)),
		checks("elements below a long name", `{"additionalProperties":{"items":{"type":"number"}}}`, `{"`+times(100_000, "k")+`":`+list(50_000, "0")+`}`),
		checks("nested allOf of 300,000 elements", times(200, `{"allOf":[`)+`{}`+times(200, `]}`), list(300_000, "0")),
		checks("20,000 objects of ten members", `{"items":{"type":"object","required":["m1","m9"],"properties":{`+numbered(10, `"m#":{"type":"string","minLength":1}`)+`}}}`, list(20_000, `{`+numbered(10, `"m#":"x"`)+`}`)),
	}
}
