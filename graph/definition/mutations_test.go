package definition_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// base reads one of the small documents that mutations start from.
func base(t testing.TB, name string) map[string]any {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", "bases", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonvalue.Decode(src)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v.(map[string]any)
}

func patch(t testing.TB, doc any, lines string) any { return enginetest.Patch(t, doc, lines) }

// The protocol's verdicts about a document, from its schema and the rule about interrupts. An exception is a document
// that the reference engine cannot answer about; here it counts as accepted by the schema.
const (
	refused   = "refused"
	accepted  = "accepted"
	exception = "exception"
)

type mutation struct {
	number int
	name   string
	base   string
	patch  string
	// verdict is the protocol's.
	verdict string
	// program is set where Compile gives one. It must wherever some run of the reference engine completes.
	program bool
}

// mutations are the rows of the protocol's mutation table (spec: definition, 9), over documents of this repository.
var mutations = []mutation{
	{1, "root is null", "linear", `set / null`, refused, false},
	{2, "root is an array", "linear", `set / []`, refused, false},
	{3, "root is a string", "linear", `set / "x"`, refused, false},
	{4, "root is {}", "linear", `set / {}`, refused, false},
	{5, "drop document", "linear", `del /document`, refused, false},
	{6, "drop state_schema", "linear", `del /state_schema`, refused, false},
	{7, "drop nodes", "linear", `del /nodes`, refused, false},
	{8, "drop edges", "linear", `del /edges`, refused, false},
	{9, "unknown top-level key extensions", "linear", `set /extensions {}`, refused, false},
	{10, "top-level $schema", "linear", `set /$schema "https://example.org/s"`, refused, false},
	{11, "top-level signature", "linear", `set /signature {"alg":"EdDSA","value":"a.b.c"}`, refused, false},
	{12, "nodes = []", "linear", `set /nodes []`, refused, false},
	{13, "edges = []", "linear", `set /edges []`, accepted, false},
	{14, "nodes is an object", "linear", `set /nodes {}`, refused, false},

	{15, `document.schema = ""`, "linear", `set /document/schema ""`, refused, false},
	{16, "document.schema not a URI", "linear", `set /document/schema "hello"`, accepted, true},
	{17, "document.version = 1", "linear", `set /document/version 1`, refused, false},
	{18, "document.version = not-semver", "linear", `set /document/version "not-semver"`, accepted, true},
	{19, "document.description = null", "linear", `set /document/description null`, refused, false},
	{20, "document.author extra key", "linear", `set /document/author "me"`, refused, false},
	{21, "document.signature block", "linear", `set /document/signature {"alg":"EdDSA","value":"a.b.c"}`, refused, false},

	{22, "state_schema = {}", "linear", `set /state_schema {}`, refused, false},
	{23, "state_schema = true", "linear", `set /state_schema true`, refused, false},
	{24, "state_schema without a keyword", "linear", `set /state_schema {"foo":1}`, accepted, true},
	{25, "state_schema.type = objekt", "linear", `set /state_schema {"type":"objekt"}`, accepted, false},
	{26, "reducer custom", "linear", `set /state_schema/properties/greeting/reducer "custom"`, accepted, false},
	{27, "reducer sum", "linear", `set /state_schema/properties/greeting/reducer "sum"`, accepted, true},
	{28, "reducer 5", "linear", `set /state_schema/properties/greeting/reducer 5`, accepted, true},
	{29, "nested reducer custom", "linear", `set /state_schema/properties/greeting {"properties":{"a":{"reducer":"custom"}}}`, accepted, true},

	{30, "checkpointing = {}", "linear", `set /checkpointing {}`, accepted, true},
	{31, "checkpointing = disabled", "linear", `set /checkpointing "disabled"`, refused, false},
	{32, "checkpointing.strategy = bogus", "linear", `set /checkpointing {"strategy":"bogus"}`, accepted, false},
	{33, "every_n_nodes without n", "linear", `set /checkpointing {"strategy":"every_n_nodes"}`, accepted, false},
	{34, "checkpointing n = 0", "linear", `set /checkpointing {"strategy":"every_n_nodes","n":0}`, refused, false},
	{35, "checkpointing n = 1.5", "linear", `set /checkpointing {"strategy":"every_n_nodes","n":1.5}`, refused, false},
	{36, "checkpointing n = 2.0", "linear", `set /checkpointing {"strategy":"every_n_nodes","n":2.0}`, accepted, true},
	{37, "checkpointing.storage", "linear", `set /checkpointing {"storage":{"kind":"s3"}}`, accepted, true},

	{38, "edge missing target", "linear", `del /edges/1/target`, refused, false},
	{39, "edge with condition", "linear", `set /edges/1/condition ".a"`, refused, false},
	{40, `edge.source = ""`, "linear", `set /edges/1/source ""`, refused, false},
	{41, "edge target unknown", "linear", `set /edges/1/target "great"`, accepted, false},
	{42, "edge source unknown", "linear", `set /edges/- {"source":"nobody","target":"end"}`, accepted, true},
	{43, "duplicate edge", "linear", `set /edges/- {"source":"greet","target":"end"}`, accepted, false},
	{44, "self-loop", "linear", `set /edges/2/target "greet"`, accepted, false},
	{45, "edge into the start node", "linear", `set /edges/2/target "start"`, accepted, false},
	{46, "no __start__ edge", "linear", `del /edges/0`, accepted, false},
	{47, "two __start__ edges", "linear", `set /edges/- {"source":"__start__","target":"greet"}`, accepted, false},
	{48, "__start__ targets another node", "linear", `set /edges/0/target "greet"`, accepted, true},
	{49, "edge into __start__", "linear", `set /edges/- {"source":"greet","target":"__start__"}`, accepted, false},
	{50, "edge leaving end", "linear", `set /edges/- {"source":"end","target":"greet"}`, accepted, false},

	{51, "node without id", "linear", `del /nodes/1/id`, refused, false},
	{52, `node.id = ""`, "linear", `set /nodes/0/id ""`, refused, false},
	{53, "node.id = 7", "linear", `set /nodes/0/id 7`, refused, false},
	{54, "duplicate node ids", "linear", `set /nodes/2/id "greet"`, accepted, false},
	{55, "node id __start__", "linear", `set /nodes/1/id "__start__"`, accepted, false},
	{56, "unknown node type", "linear", `set /nodes/1/type "stepp"`, refused, false},
	{57, "node without type", "linear", `del /nodes/1/type`, refused, false},
	{58, "extra key on node", "linear", `set /nodes/1/label "x"`, refused, false},
	{59, "no start node", "linear", `set /nodes/0 {"id":"start","type":"step","config":{"handler":"x"}}`, accepted, false},
	{60, "two start nodes", "linear", `set /nodes/1 {"id":"greet","type":"start"}`, accepted, false},
	{61, "no end node", "linear", "set /nodes/2 {\"id\":\"end\",\"type\":\"step\",\"config\":{\"handler\":\"x\"}}\nset /edges/- {\"source\":\"end\",\"target\":\"greet\"}", accepted, false},
	{62, "two end nodes", "linear", `set /nodes/- {"id":"end2","type":"end"}`, accepted, false},
	{63, "unreachable node", "linear", "set /nodes/- {\"id\":\"orphan\",\"type\":\"step\",\"config\":{\"handler\":\"x\"}}\nset /edges/- {\"source\":\"orphan\",\"target\":\"end\"}", accepted, true},

	{64, "start.config.output_schema", "linear", `set /nodes/0/config {"output_schema":{}}`, refused, false},
	{65, "input_schema = x", "linear", `set /nodes/0/config {"input_schema":"x"}`, refused, false},
	{66, "output_mapping as object", "linear", `set /nodes/2/config {"output_mapping":{"a":{"jq":".a"}}}`, refused, false},
	{67, `output_mapping = ""`, "linear", `set /nodes/2/config {"output_mapping":""}`, refused, false},
	{68, "output_mapping invalid jq", "linear", `set /nodes/2/config {"output_mapping":".["}`, accepted, false},

	{69, "step without config", "linear", `del /nodes/1/config`, refused, false},
	{70, "step config {}", "linear", `set /nodes/1/config {}`, refused, false},
	{71, "step with code_ref only", "linear", `set /nodes/1/config {"code_ref":"x"}`, accepted, true},
	{72, "step.handler = 5", "linear", `set /nodes/1/config/handler 5`, accepted, true},
	{73, `step.handler = ""`, "linear", `set /nodes/1/config/handler ""`, accepted, true},
	{74, "llm_call without config", "linear", `set /nodes/1 {"id":"greet","type":"llm_call"}`, refused, false},
	{75, "llm_call config {}", "linear", `set /nodes/1 {"id":"greet","type":"llm_call","config":{}}`, accepted, true},
	{76, "llm_call.output_schema = x", "linear", `set /nodes/1 {"id":"greet","type":"llm_call","config":{"model":"m","output_schema":"x"}}`, accepted, true},
	{77, "llm_call.output_schema invalid", "linear", `set /nodes/1 {"id":"greet","type":"llm_call","config":{"model":"m","output_schema":{"type":"objekt"}}}`, accepted, false},
	{78, "tool_call missing server", "routing", `del /nodes/4/config/server`, refused, false},
	{79, `tool_call.server = ""`, "routing", `set /nodes/4/config/server ""`, refused, false},
	{80, "tool_call.arguments = []", "routing", `set /nodes/4/config/arguments []`, refused, false},
	{81, "tool_call with input_mapping", "routing", `set /nodes/4/config/input_mapping {}`, refused, false},

	{82, "switch without cases", "routing", `del /nodes/2/config/cases`, refused, false},
	{83, "switch cases = []", "routing", `set /nodes/2/config/cases []`, refused, false},
	{84, "switch without default", "routing", `del /nodes/2/config/default`, accepted, true},
	{85, "switch case target unknown", "routing", `set /nodes/2/config/cases/1/target "serch"`, accepted, true},
	{86, "switch default unknown", "routing", `set /nodes/2/config/default "nobody"`, accepted, true},
	{87, "switch when invalid jq", "routing", `set /nodes/2/config/cases/1/when ".intent =="`, accepted, true},
	{88, "switch case extra key", "routing", `set /nodes/2/config/cases/0/label "x"`, refused, false},
	{89, "static edge out of switch", "routing", `set /edges/- {"source":"route","target":"search"}`, accepted, true},

	{90, "interrupt without resume_schema", "routing", `del /nodes/3/config/resume_schema`, refused, false},
	{91, "resume_schema = {}", "routing", `set /nodes/3/config/resume_schema {}`, refused, false},
	{92, "interrupt without prompt", "routing", `del /nodes/3/config/prompt`, refused, false},
	{93, "interrupt with prompt_ref only", "routing", "del /nodes/3/config/prompt\nset /nodes/3/config/prompt_ref \"p\"", accepted, true},
	{94, "interrupt config.timeout = soon", "routing", `set /nodes/3/config/timeout "soon"`, accepted, true},
	{95, "interrupt assignee", "routing", `set /nodes/3/config/assignee "x"`, refused, false},

	{96, "parallel join = some", "parallel", `set /nodes/1/config/join "some"`, refused, false},
	{97, "n_of_m without n", "parallel", `set /nodes/1/config/join "n_of_m"`, refused, false},
	{98, "n = 0", "parallel", "set /nodes/1/config/join \"n_of_m\"\nset /nodes/1/config/n 0", refused, false},
	{99, "n = 9 of 3", "parallel", "set /nodes/1/config/join \"n_of_m\"\nset /nodes/1/config/n 9", accepted, false},
	{100, "join all with stray n", "parallel", `set /nodes/1/config/n 2`, accepted, true},
	{101, "branches = []", "parallel", `set /nodes/1/config/branches []`, refused, false},
	{102, "branch without name", "parallel", `del /nodes/1/config/branches/0/name`, refused, false},
	{103, "branch with nodes", "parallel", `set /nodes/1/config/branches/0/nodes ["a"]`, refused, false},
	{104, "duplicate branch names", "parallel", `set /nodes/1/config/branches/1/name "one"`, accepted, true},
	{105, "branch entry unknown", "parallel", `set /nodes/1/config/branches/0/entry "nobody"`, exception, false},
	{106, "branch entry = join target", "parallel", `set /nodes/1/config/branches/- {"name":"four","entry":"merge"}`, accepted, true},
	{107, "branch node with two edges", "parallel", `set /edges/- {"source":"a","target":"end"}`, exception, false},
	{108, "branch dead end", "parallel", `del /edges/3`, exception, false},
	{109, "branch cycle", "parallel", `set /edges/3/target "a"`, exception, false},
	{110, "branch runs into end", "parallel", `set /edges/3/target "end"`, exception, false},
	{111, "switch in a branch without a static edge", "parallel", "set /nodes/2 {\"id\":\"a\",\"type\":\"switch\",\"config\":{\"cases\":[{\"when\":\".x\",\"target\":\"b\"}],\"default\":\"merge\"}}\ndel /edges/3", exception, true},
	{112, "switch in a branch with a static edge", "parallel", `set /nodes/2 {"id":"a","type":"switch","config":{"cases":[{"when":".x","target":"b"}],"default":"merge"}}`, accepted, true},
	{113, "interrupt in a branch", "parallel", `set /nodes/2 {"id":"a","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}}`, refused, false},
	{114, "interrupt in a branch, two outgoing edges", "parallel", "set /nodes/2 {\"id\":\"a\",\"type\":\"interrupt\",\"config\":{\"prompt\":\"?\",\"resume_schema\":{\"type\":\"object\"}}}\nset /edges/- {\"source\":\"fork\",\"target\":\"end\"}", accepted, false},
	{115, "interrupt behind a switch in a branch", "parallel", "set /nodes/2 {\"id\":\"a\",\"type\":\"switch\",\"config\":{\"cases\":[{\"when\":\".x\",\"target\":\"ask\"}],\"default\":\"merge\"}}\nset /nodes/- {\"id\":\"ask\",\"type\":\"interrupt\",\"config\":{\"prompt\":\"?\",\"resume_schema\":{\"type\":\"object\"}}}\nset /edges/- {\"source\":\"ask\",\"target\":\"merge\"}", accepted, false},
	{116, "subworkflow in a branch", "parallel", `set /nodes/2 {"id":"a","type":"subworkflow","config":{"workflow_ref":"w","input_mapping":{}}}`, accepted, true},
	{117, "agent_delegate in a branch", "parallel", `set /nodes/2 {"id":"a","type":"agent_delegate","config":{"agent_id":"w","protocol":"sdk","input_mapping":{}}}`, accepted, true},
	{118, "parallel config.timeout", "parallel", `set /nodes/1/config/timeout "120s"`, accepted, true},

	{119, "wait kind = event", "linear", `set /nodes/1 {"id":"greet","type":"wait","config":{"kind":"event"}}`, refused, false},
	{120, "wait duration without duration", "linear", `set /nodes/1 {"id":"greet","type":"wait","config":{"kind":"duration"}}`, refused, false},
	{121, "duration_ms = -1", "linear", `set /nodes/1 {"id":"greet","type":"wait","config":{"kind":"duration","duration_ms":-1}}`, refused, false},
	{122, "duration = 5 minutes", "linear", `set /nodes/1 {"id":"greet","type":"wait","config":{"kind":"duration","duration":"5 minutes"}}`, accepted, false},
	{123, "duration = PT0S", "linear", `set /nodes/1 {"id":"greet","type":"wait","config":{"kind":"duration","duration":"PT0S"}}`, accepted, false},
	{124, "until missing", "linear", `set /nodes/1 {"id":"greet","type":"wait","config":{"kind":"until"}}`, refused, false},
	{125, "until = tomorrow", "linear", `set /nodes/1 {"id":"greet","type":"wait","config":{"kind":"until","until":"tomorrow"}}`, accepted, false},
	{126, "signal missing", "linear", `set /nodes/1 {"id":"greet","type":"wait","config":{"kind":"signal"}}`, refused, false},
	{127, "signal blank", "linear", `set /nodes/1 {"id":"greet","type":"wait","config":{"kind":"signal","signal":"   "}}`, accepted, false},
	{128, "signal with stray duration_ms", "linear", `set /nodes/1 {"id":"greet","type":"wait","config":{"kind":"signal","signal":"go","duration_ms":5}}`, accepted, true},
	{129, "wait without config", "linear", `set /nodes/1 {"id":"greet","type":"wait"}`, refused, false},

	{130, "assignments = {}", "compute", `set /nodes/3/config/assignments {}`, refused, false},
	{131, "assignment bare value", "compute", `set /nodes/3/config/assignments/y "v"`, refused, false},
	{132, "assignment with jq and literal", "compute", `set /nodes/3/config/assignments/y {"jq":".x","literal":1}`, refused, false},
	{133, "assignment {}", "compute", `set /nodes/3/config/assignments/y {}`, refused, false},
	{134, `assignment jq = ""`, "compute", `set /nodes/3/config/assignments/y {"jq":""}`, refused, false},
	{135, "assignment jq blank", "compute", `set /nodes/3/config/assignments/y {"jq":"  "}`, accepted, false},
	{136, "literal null for a string", "compute", `set /nodes/3/config/assignments/y {"literal":null}`, accepted, true},
	{137, "dotted key", "compute", `set /nodes/3/config/assignments/a.b {"literal":1}`, accepted, true},

	{138, "subworkflow without workflow_ref", "linear", `set /nodes/1 {"id":"greet","type":"subworkflow","config":{"input_mapping":{}}}`, refused, false},
	{139, "subworkflow without input_mapping", "linear", `set /nodes/1 {"id":"greet","type":"subworkflow","config":{"workflow_ref":"w"}}`, refused, false},
	{140, "input_mapping as string", "linear", `set /nodes/1 {"id":"greet","type":"subworkflow","config":{"workflow_ref":"w","input_mapping":"."}}`, refused, false},
	{141, "input_mapping {}", "linear", `set /nodes/1 {"id":"greet","type":"subworkflow","config":{"workflow_ref":"w","input_mapping":{}}}`, accepted, true},
	{142, "unknown workflow_ref", "linear", `set /nodes/1 {"id":"greet","type":"subworkflow","config":{"workflow_ref":"nobody","input_mapping":{}}}`, accepted, true},
	{143, "version_pin no hash", "linear", `set /nodes/1 {"id":"greet","type":"subworkflow","config":{"workflow_ref":"w","input_mapping":{},"version_pin":"v1"}}`, accepted, false},
	{144, "protocol = http", "linear", `set /nodes/1 {"id":"greet","type":"agent_delegate","config":{"agent_id":"w","protocol":"http","input_mapping":{}}}`, refused, false},
	{145, "agent_delegate without agent_id", "linear", `set /nodes/1 {"id":"greet","type":"agent_delegate","config":{"protocol":"sdk","input_mapping":{}}}`, refused, false},
	{146, "input_mapping array", "linear", `set /nodes/1 {"id":"greet","type":"agent_delegate","config":{"agent_id":"w","protocol":"sdk","input_mapping":[]}}`, refused, false},
	{147, "malformed template", "linear", `set /nodes/1 {"id":"greet","type":"agent_delegate","config":{"agent_id":"w","protocol":"sdk","input_mapping":{"task":"${ .task"}}}`, accepted, true},

	{148, "retry without max_attempts", "linear", `set /nodes/1/retry {}`, refused, false},
	{149, "max_attempts = 0", "linear", `set /nodes/1/retry {"max_attempts":0}`, refused, false},
	{150, "max_attempts = 2.5", "linear", `set /nodes/1/retry {"max_attempts":2.5}`, refused, false},
	{151, `max_attempts = "3"`, "linear", `set /nodes/1/retry {"max_attempts":"3"}`, refused, false},
	{152, "backoff_coefficient = -2", "linear", `set /nodes/1/retry {"max_attempts":2,"backoff_coefficient":-2}`, accepted, true},
	{153, "initial_interval = soon", "linear", `set /nodes/1/retry {"max_attempts":2,"initial_interval":"soon"}`, accepted, true},
	{154, "initial_interval = 100", "linear", `set /nodes/1/retry {"max_attempts":2,"initial_interval":100}`, refused, false},
	{155, "retry.jitter", "linear", `set /nodes/1/retry {"max_attempts":2,"jitter":true}`, refused, false},
	{156, "non_retryable_errors = [1]", "linear", `set /nodes/1/retry {"max_attempts":2,"non_retryable_errors":[1]}`, refused, false},
	{157, "retry on an end node", "linear", `set /nodes/2/retry {"max_attempts":2}`, accepted, true},
	{158, `timeout = ""`, "linear", `set /nodes/1/timeout ""`, refused, false},
	{159, "timeout = 30", "linear", `set /nodes/1/timeout 30`, refused, false},
	{160, "timeout = PT30S", "linear", `set /nodes/1/timeout "PT30S"`, accepted, false},
	{161, "timeout = 1.5s", "linear", `set /nodes/1/timeout "1.5s"`, accepted, false},
	{162, "timeout = 1h30m", "linear", `set /nodes/1/timeout "1h30m"`, accepted, false},
	{163, "timeout = 10", "linear", `set /nodes/1/timeout "10"`, accepted, true},
	{164, "metadata = x", "linear", `set /nodes/1/metadata "x"`, refused, false},
	{165, "metadata any keys", "linear", `set /nodes/1/metadata {"a":{"b":[1]}}`, accepted, true},

	{166, "nested parallel with a shared tail", "parallel", nestedTail, exception, true},
	{167, "top-level parallel with a shared tail", "parallel", "set /edges/3/target \"c\"\nset /edges/4/target \"c\"\ndel /nodes/1/config/branches/2", accepted, true},
	{168, "parallel without an outgoing edge", "parallel", `del /edges/2`, accepted, false},
	{169, "join target = the parallel itself", "parallel", `set /edges/2/target "fork"`, exception, false},
	{170, `interrupt.prompt = ""`, "routing", `set /nodes/3/config/prompt ""`, refused, false},
	{171, "a loop through a switch", "routing", `set /nodes/2/config/default "classify"`, accepted, true},
	{172, "very long id", "linear", "set /nodes/1/id \"" + strings.Repeat("x", 10000) + "\"\nset /edges/1/target \"" + strings.Repeat("x", 10000) + "\"\nset /edges/2/source \"" + strings.Repeat("x", 10000) + "\"", accepted, true},
	{173, "node id with spaces, slash, tilde", "linear", "set /nodes/1/id \"a /~b\"\nset /edges/1/target \"a /~b\"\nset /edges/2/source \"a /~b\"", accepted, true},
	{174, "config key a/b~c", "routing", `set /nodes/3/config/a~1b~0c 1`, refused, false},
	{175, "input_schema contradicting the input", "linear", `set /nodes/0/config {"input_schema":{"required":["never"]}}`, accepted, true},
	{176, "output_schema contradicting the result", "linear", `set /nodes/2/config {"output_schema":{"type":"string"}}`, accepted, true},
	{177, "llm_call timeout 0s", "routing", `set /nodes/1/timeout "0s"`, accepted, true},
	{178, "max_attempts = 1e9", "linear", `set /nodes/1/retry {"max_attempts":1e9}`, accepted, true},
	{179, "state_schema with $ref to nowhere", "linear", `set /state_schema {"$ref":"#/$defs/x"}`, accepted, false},
	{180, "state_schema with unknown format", "linear", `set /state_schema/properties/greeting/format "nonsense"`, accepted, true},
	{181, "state_schema with draft-07", "linear", `set /state_schema/$schema "http://json-schema.org/draft-07/schema#"`, accepted, true},
	{182, "state_schema with invalid pattern", "linear", `set /state_schema/properties/greeting/pattern "("`, accepted, false},
}

const nestedTail = `
set /nodes/2 {"id":"a","type":"parallel","config":{"join":"all","branches":[{"name":"x","entry":"x"},{"name":"y","entry":"y"}]}}
set /nodes/- {"id":"x","type":"step","config":{"handler":"x"}}
set /nodes/- {"id":"y","type":"step","config":{"handler":"y"}}
set /nodes/- {"id":"tail","type":"step","config":{"handler":"tail"}}
set /nodes/- {"id":"joined","type":"step","config":{"handler":"joined"}}
set /edges/3/target "joined"
set /edges/- {"source":"x","target":"tail"}
set /edges/- {"source":"y","target":"tail"}
set /edges/- {"source":"tail","target":"joined"}
set /edges/- {"source":"joined","target":"merge"}
`

// otherVerdict lists the rows in which this engine decides otherwise than the protocol's schema and profile, and why.
var otherVerdict = map[int]string{
	11:  "a signature block is taken off before the document is checked",
	21:  "a signature block is taken off before the document is checked",
	114: "an interrupt in a branch is found although the parallel node has two outgoing edges",
	115: "an interrupt in a branch is found behind a switch",
}

func (m mutation) title() string { return fmt.Sprintf("%d %s", m.number, m.name) }
