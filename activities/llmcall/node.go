package llmcall

import (
	"fmt"
	"math"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// node is the config of an llm_call node (spec: activities, 5.1). The sampling settings are additions.
type node struct {
	id string
	// agent is the value of config.agent; if it is "", model is set.
	agent string
	model string
	// models are those of a list, in the order of use; model is the first.
	models []string
	stream bool
	// schema is nil without an output_schema; schemaText is its canonical text.
	schema     *jsonschema.Schema
	schemaText []byte

	temperature, topP *float64
	maxTokens         int
	seed              *int
	stop              []string
}

// readNode reads all of a node's config but the prompts. The error is a Failure with code LLM_CONFIG_INVALID.
func (e *Executor) readNode(req activities.Request) (*node, error) {
	report := jsonobject.Report{}
	o := report.Object(req.Config)
	n := &node{id: req.NodeID, stream: e.config.Stream}
	if agent := o.Get(agentMember); agent.Present() {
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

// readStop reads a string, or an array of strings; none of them may be empty.
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
	n.schemaText = jsonvalue.Canonical(raw)
}

// request makes the request for a conversation. The error is a Failure with code LLM_CONFIG_INVALID, where the client
// knows that the model does not take the settings.
func (n *node) request(messages []openai.ChatCompletionMessage) (openai.ChatCompletionRequest, error) {
	return limited(openai.ChatCompletionRequest{
		Model: n.model, Messages: messages, Seed: n.seed, Stop: n.stop,
		Temperature: sampling(n.temperature), TopP: sampling(n.topP),
	}, n.maxTokens, fmt.Sprintf("llm_call %q", n.id))
}

// wanted is the schema of the answer, nil without an output_schema.
func (n *node) wanted() *schema {
	if n.schema == nil {
		return nil
	}
	return &schema{name: n.id, text: n.schemaText}
}

// sampling returns a setting for the client, which omits zero: the smallest number above it means the same to a model.
func sampling(v *float64) float32 {
	switch {
	case v == nil:
		return 0
	case float32(*v) == 0:
		return math.SmallestNonzeroFloat32
	}
	return float32(*v)
}
