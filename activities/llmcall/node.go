package llmcall

import (
	"math"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// node is what an llm_call asks for (spec: activities, 5.1). The sampling settings are additions.
type node struct {
	id     string
	model  string
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
	r := settings{req: req}
	n := &node{id: req.NodeID, stream: e.config.Stream}
	n.model = strings.TrimSpace(r.text("model"))
	if r.err == nil && n.model == "" {
		return nil, r.invalid("names no model; set config.model")
	}
	if v, given := req.Config["stream"]; given {
		ok := false
		if n.stream, ok = v.(bool); !ok {
			r.refuse("stream", "true or false")
		}
	}
	n.temperature = r.number("temperature", 0, math.MaxFloat32, false)
	n.topP = r.number("top_p", 0, 1, false)
	if v := r.number("max_tokens", 1, math.MaxInt32, true); v != nil {
		n.maxTokens = int(*v)
	}
	const exact = 1 << 53
	if v := r.number("seed", -exact, exact, true); v != nil {
		n.seed = new(int(*v))
	}
	n.stop = r.texts("stop")
	if r.err != nil {
		return nil, r.err
	}
	return n, n.readSchema(r)
}

func (n *node) readSchema(r settings) error {
	raw, given := r.req.Config["output_schema"]
	if !given {
		return nil
	}
	if _, ok := raw.(map[string]any); !ok {
		r.refuse("output_schema", "an object")
		return r.err
	}
	schema, err := jsonschema.Compile(raw)
	if err != nil {
		return r.invalid("has an output_schema that cannot be used: " + err.Error())
	}
	n.schema, n.schemaText = schema, jsonvalue.Canonical(raw)
	return nil
}

// request makes the request for a conversation. The error is a Failure with code LLM_CONFIG_INVALID, where the client
// knows that the model does not take the settings.
func (n *node) request(messages []openai.ChatCompletionMessage) (openai.ChatCompletionRequest, error) {
	r := openai.ChatCompletionRequest{
		Model: n.model, Messages: messages, Seed: n.seed, Stop: n.stop,
		Temperature: sampling(n.temperature), TopP: sampling(n.topP),
	}
	if n.stream {
		r.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	validator := openai.NewReasoningValidator()
	common := r
	//lint:ignore SA1019 many servers know the limit by its old name alone
	common.MaxTokens = n.maxTokens
	if validator.Validate(common) == nil {
		return common, nil
	}
	// Reasoning models know it by its new name. Where the name was not what is wrong the error comes again.
	r.MaxCompletionTokens = n.maxTokens
	err := validator.Validate(r)
	if err != nil {
		return r, activities.Fail(problem.LLMConfigInvalid, "llm_call %q: model %q does not take these settings: %v", n.id, n.model, err)
	}
	return r, nil
}

// sampling gives a setting in the client's form, which leaves out zero: the smallest number above it means the same to
// a model.
func sampling(v *float64) float32 {
	switch {
	case v == nil:
		return 0
	case float32(*v) == 0:
		return math.SmallestNonzeroFloat32
	}
	return float32(*v)
}

// settings reads members of a node's config and keeps the first thing that is wrong.
type settings struct {
	req activities.Request
	err error
}

func (r *settings) invalid(what string) error {
	return activities.Fail(problem.LLMConfigInvalid, "llm_call %q %s", r.req.NodeID, what)
}

func (r *settings) refuse(name, want string) {
	if r.err == nil {
		r.err = r.invalid("has a config." + name + " that is not " + want)
	}
}

// text gives a member that is a string, "" if it is absent.
func (r *settings) text(name string) string {
	v, given := r.req.Config[name]
	text, ok := v.(string)
	if given && !ok {
		r.refuse(name, "a text")
	}
	return text
}

// number gives a member within the bounds, nil if it is absent.
func (r *settings) number(name string, low, high float64, whole bool) *float64 {
	v, given := r.req.Config[name]
	if !given {
		return nil
	}
	number, ok := v.(float64)
	if !ok || number < low || number > high || whole && number != math.Trunc(number) {
		r.refuse(name, "a number of its range")
		return nil
	}
	return &number
}

// texts gives a member that is a string or an array of strings that are not empty.
func (r *settings) texts(name string) []string {
	const want = "a text or a list of texts"
	v, given := r.req.Config[name]
	if !given {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var texts []string
	for _, v := range list {
		text, ok := v.(string)
		if !ok || text == "" {
			r.refuse(name, want)
			return nil
		}
		texts = append(texts, text)
	}
	return texts
}
