package llmcall

import (
	"math"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

// node is the config of an llm_call node (spec: activities, 5.1). The sampling settings are additions.
type node struct {
	id string
	// agent is the value of config.agent; if it is "", model is set.
	agent string
	model string
	// models is the list of models, in the order of use; model is the first.
	models []string
	stream bool
	// schema is the compiled output_schema, nil without one; rawSchema is the schema itself.
	schema    *jsonschema.Schema
	rawSchema map[string]any

	temperature, topP *float64
	maxTokens         int
	seed              *int
	stop              []string
}

// readNode reads a node's config, except the prompts. The error is a Failure with code LLM_CONFIG_INVALID.
func (e *Executor) readNode(req activities.Request) (*node, error) {
	report := jsonobject.Report{}
	o := report.Object(req.Config)
	n := &node{id: req.NodeID, stream: e.config.Stream}
	if agent := o.Get(agentField); agent.Present() {
		n.agent = strings.TrimSpace(agent.NonBlank())
		n.model = strings.TrimSpace(o.Get("model").Text())
	} else {
		n.models = readModels(o.Require("model"))
		n.model = n.models[0]
	}
	if stream := o.Get("stream"); stream.Present() {
		n.stream = stream.Bool()
	}
	n.temperature = optional(o.Get("temperature").Number(0, math.MaxFloat32))
	n.topP = optional(o.Get("top_p").Number(0, 1))
	maxTokens, _ := o.Get("max_tokens").Whole(1, math.MaxInt32)
	n.maxTokens = int(maxTokens)
	const exact = 1 << 53
	if seed, ok := o.Get("seed").Whole(-exact, exact); ok {
		n.seed = new(int(seed))
	}
	n.stop = readStop(o.Get("stop"))
	n.readSchema(o.Get("output_schema"))
	if len(report.Findings) > 0 {
		return nil, activities.Fail(problem.LLMConfigInvalid, "llm_call %q: %s", req.NodeID, jsonobject.Describe("config", report.Findings[0]))
	}
	return n, nil
}

func optional[T any](value T, given bool) *T {
	if !given {
		return nil
	}
	return &value
}

// readModels reads the name of a model, or a list of names; there is always one.
func readModels(v jsonobject.Value) []string {
	if _, list := v.Plain.([]any); !list {
		return []string{strings.TrimSpace(v.NonBlank())}
	}
	var models []string
	for _, e := range v.Elements() {
		models = append(models, strings.TrimSpace(e.NonBlank()))
	}
	if len(models) == 0 {
		v.Fail("minItems", "the list of models is empty")
		models = []string{""}
	}
	return models
}

// readStop reads a string, or an array of strings. The strings must not be empty.
func readStop(v jsonobject.Value) []string {
	if _, one := v.Plain.(string); one {
		return []string{v.NonEmpty()}
	}
	var texts []string
	for _, e := range v.Elements() {
		texts = append(texts, e.NonEmpty())
	}
	return texts
}

func (n *node) readSchema(v jsonobject.Value) {
	raw := v.Map()
	if raw == nil {
		return
	}
	var err error
	if n.schema, err = jsonschema.Compile(raw); err != nil {
		v.Fail("profile", "invalid schema: %v", err)
		return
	}
	n.rawSchema = raw
}
