package agentloop

import (
	"strings"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The limits that keep the journal entry of a reply below 2 MiB, whatever the model returns. Sizes are those of canonical JSON.
const (
	maxTextBytes      = 1 << 20
	maxReasoningBytes = 128 << 10
	maxArguments      = 256 << 10
	maxArgumentsAll   = 512 << 10
	maxCalls          = 128
	maxRaw            = 1 << 10
	maxResultBytes    = 2<<20 - 64<<10
	maxNameBytes      = 200
	// maxArgumentDepth bounds the nesting of arguments.
	maxArgumentDepth = 100
)

// replyBody records a reply: its text without unstorable characters, its arguments parsed, everything within the limits.
func (a *agent) replyBody(in ModelReplied) body {
	r := &in.Reply
	b := body{"try": float64(in.Try), "model": clean(r.Model, maxNameBytes), "text": clean(r.Text, maxTextBytes), "finish": clean(string(r.Finish), 40), "requestHash": a.hash, "workMs": millis(in.Worked)}
	if r.Reasoning != "" {
		b["reasoning"] = clean(r.Reasoning, maxReasoningBytes)
	}
	calls, left := []any{}, maxArgumentsAll
	for i := range r.Calls {
		if i == maxCalls {
			b["dropped"] = float64(len(r.Calls) - maxCalls)
			break
		}
		c := &r.Calls[i]
		recorded := map[string]any{"id": clean(c.ID, maxNameBytes), "name": clean(c.Name, maxNameBytes)}
		args, why := arguments(c.Arguments, min(left, maxArguments))
		if why == "" {
			recorded["arguments"] = args
			left -= jsonvalue.Size(args, 0)
		} else {
			recorded["raw"], recorded["why"], recorded["bytes"] = clean(c.Arguments, maxRaw), why, float64(len(c.Arguments))
		}
		calls = append(calls, recorded)
	}
	b["calls"] = calls
	u := bounded(r.Usage)
	if u.Prompt == 0 && u.Completion == 0 {
		u = chat.Usage{Prompt: a.talk.bytes / bytesPerToken, Completion: replyBytes(r)/bytesPerToken + 1, Estimated: true}
	}
	b["usage"] = usageBody(u)
	return b
}

// replyBytes is about how much a model has written for a reply.
func replyBytes(r *chat.Reply) int {
	n := len(r.Text) + len(r.Reasoning)
	for i := range r.Calls {
		n += len(r.Calls[i].Name) + len(r.Calls[i].Arguments)
	}
	return n
}

// bytesPerToken is about how long a token is.
const bytesPerToken = 4

// arguments reads the arguments of a call, or says why they cannot be read.
func arguments(text string, most int) (map[string]any, string) {
	if strings.TrimSpace(text) == "" {
		return map[string]any{}, ""
	}
	if len(text) > most {
		return nil, "they are too large"
	}
	if jsonvalue.TooDeep([]byte(text), maxArgumentDepth) {
		return nil, "they are nested too deeply"
	}
	v, losses, err := jsonvalue.DecodeUnique([]byte(text))
	if err != nil {
		return nil, "they are not JSON: " + clean(err.Error(), 500)
	}
	if len(losses) > 0 {
		return nil, "they cannot be kept as they are: " + clean(losses[0].Error(), 500)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, "they are not an object"
	}
	if jsonvalue.Size(object, most) > most {
		return nil, "they are too large"
	}
	return object, ""
}

// clean returns a text that is valid UTF-8 and takes at most so many bytes as JSON.
func clean(text string, most int) string {
	if len(text) > most {
		text = text[:most]
		for n := 0; n < utf8.UTFMax && len(text) > 0 && !utf8.RuneStart(text[len(text)-1]); n++ {
			text = text[:len(text)-1]
		}
		if r, size := utf8.DecodeLastRuneInString(text); r == utf8.RuneError && size == 1 {
			text = text[:len(text)-1]
		}
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	for jsonvalue.StringSize(text) > most+2 {
		text = strings.ToValidUTF8(text[:len(text)/2], "")
	}
	return text
}

// nameOfTool reports whether providers take a name of a tool.
func nameOfTool(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
