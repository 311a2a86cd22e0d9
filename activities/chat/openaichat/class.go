package openaichat

import (
	"cmp"
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/activities/chat"
)

// classify returns the class of an error, and the HTTP status, 0 without one.
func classify(ctx context.Context, err error) (chat.Class, int) {
	if ctx.Err() != nil || errors.Is(err, errRequestTimeout) || errors.Is(err, errIdle) || errors.Is(err, context.DeadlineExceeded) {
		return chat.ClassSlow, 0
	}
	r := refusalOf(err)
	if class := r.Class(); class != "" {
		return class, r.Status
	}
	if answer, ok := errors.AsType[*answerError](err); ok {
		return cmp.Or(answer.class, chat.ClassDown), 0
	}
	return chat.ClassDown, 0
}

// refusalOf returns the refusal in an error that the provider reports, the zero value for other errors.
func refusalOf(err error) chat.Refusal {
	if e, ok := errors.AsType[*statusError](err); ok {
		return chat.Refusal{Status: e.status, Text: e.body, Pause: e.header.Get("Retry-After")+e.header.Get("Retry-After-Ms") != ""}
	}
	if e, ok := errors.AsType[*answerError](err); ok && e.provider {
		return chat.Refusal{Text: e.quote}
	}
	return chat.Refusal{}
}
