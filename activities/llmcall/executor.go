package llmcall

import (
	"context"

	"github.com/sashabaranov/go-openai"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Execute asks the model. What is wrong is found in this order: the node's type, its config and prompts, the key, the
// call. Errors are *activities.Failure.
func (e *Executor) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	if req.NodeType != "llm_call" {
		return activities.Result{}, activities.Fail(problem.ExecutorUnsupportedNode,
			"node %q is of type %q; the model executor performs only llm_call nodes", req.NodeID, req.NodeType)
	}
	n, err := e.readNode(req)
	if err != nil {
		return activities.Result{}, err
	}
	messages, err := e.messages(req)
	if err != nil {
		return activities.Result{}, err
	}
	key, err := e.key(ctx)
	if err != nil {
		return activities.Result{}, err
	}
	c := &call{Executor: e, req: req, node: n, key: key, scrub: newScrubber(key)}
	started := e.config.Now()
	result, err := c.run(ctx, messages)
	usage := c.usage(e.config.Now().Sub(started))
	if err != nil {
		failure := c.explain(ctx, err)
		failure.Usage = usage
		return activities.Result{}, failure
	}
	if len(c.replies) > 1 {
		usage["repaired"] = true
	}
	result.Usage = usage
	return result, nil
}

// key asks for the key of this attempt.
func (e *Executor) key(ctx context.Context) (Secret, error) {
	if e.config.NoAuth {
		return Secret{}, nil
	}
	key, err := e.config.APIKey(ctx)
	if err != nil {
		failure := activities.Fail(problem.LLMCredentialsMissing, "the key of the model provider cannot be read")
		failure.Err = err
		return Secret{}, failure
	}
	// The HTTP client would refuse another key with an error of its own, after the prompt was made ready.
	if key = NewSecret(key.value); !key.sendable() {
		return Secret{}, activities.Fail(problem.LLMCredentialsMissing,
			"the key of the model provider is blank, or holds characters that no header may have")
	}
	return key, nil
}

// run asks once, and once more if the first answer breaks the output_schema: then the second counts.
func (c *call) run(ctx context.Context, messages []openai.ChatCompletionMessage) (activities.Result, error) {
	for {
		r, err := c.ask(ctx, messages)
		if err != nil {
			return activities.Result{}, err
		}
		output, violation := c.node.output(r)
		if violation == "" {
			return activities.Result{Output: c.scrub.output(output)}, nil
		}
		violation = clip(c.scrub.text(violation))
		r.violation = excerpt(violation)
		cut := r.finish == string(openai.FinishReasonLength)
		if c.config.NoRepair || cut || len(c.replies) > 1 {
			return activities.Result{}, c.unusable(violation, cut, len(c.replies))
		}
		messages = c.node.repair(messages, r, violation)
	}
}

// unusable is the failure of an answer that breaks the output_schema. The engine records it as OUTPUT_SCHEMA_VIOLATION.
func (c *call) unusable(violation string, cut bool, answers int) error {
	switch {
	case cut:
		// A second answer would be cut at the same place.
		violation += " (the model stopped at its token limit; raise config.max_tokens)"
	case answers > 1:
		violation += " (after a request to repair it)"
	}
	return activities.Fail(problem.LLMOutputInvalid, "model %q: %s", c.node.model, violation)
}

var _ activities.Executor = (*Executor)(nil)
