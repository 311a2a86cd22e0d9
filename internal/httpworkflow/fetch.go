package httpworkflow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// maxFresh bounds how long a document is used without asking.
const maxFresh = 24 * time.Hour

// transient is a failure that another try may not meet.
type transient struct{ error }

func (t transient) Unwrap() error { return t.error }

// fetch brings an entry up to date. A transient failure is retried.
func (r *Resolver) fetch(ctx context.Context, address string, e *entry) error {
	pause := r.config.RetryPause
	for try := 1; ; try++ {
		err := r.ask(ctx, address, e)
		if _, isTransient := errors.AsType[transient](err); !isTransient || try == maxTries || ctx.Err() != nil {
			return r.within(ctx, err)
		}
		if wait.For(ctx, pause) != nil {
			return r.within(ctx, err)
		}
		pause *= 2
	}
}

// within marks an error that was caused by the time limit.
func (r *Resolver) within(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("there was no whole answer within %v: %w", r.config.Timeout, context.DeadlineExceeded)
	}
	return err
}

// ask makes one request.
func (r *Resolver) ask(ctx context.Context, address string, e *entry) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json, application/yaml;q=0.9, */*;q=0.1")
	req.Header.Set("User-Agent", "workflows-engine")
	if e.document != nil && e.etag != "" {
		req.Header.Set("If-None-Match", e.etag)
	}
	asked := r.config.Now()
	res, err := r.client.Do(req)
	if err != nil {
		if why, ok := errors.AsType[*refusal](err); ok {
			return why
		}
		// The text of a *url.Error has the whole address, which after a redirect may be one that was signed for us alone.
		if request, ok := errors.AsType[*url.Error](err); ok {
			err = request.Err
		}
		return transient{err}
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotModified && e.document != nil:
		e.freshUntil = asked.Add(freshness(res.Header))
		return nil
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500:
		return transient{fmt.Errorf("the server answers with status %s", res.Status)}
	case res.StatusCode < 200 || res.StatusCode > 299:
		return fmt.Errorf("the server answers with status %s", res.Status)
	case res.ContentLength > r.config.MaxBytes:
		return r.tooLarge(address)
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if strings.HasSuffix(kind, "html") || strings.HasSuffix(kind, "xhtml+xml") {
		return fmt.Errorf("expected a definition, found a web page (%s)", kind)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, r.config.MaxBytes+1))
	switch {
	case err != nil:
		return transient{fmt.Errorf("the answer broke off: %w", err)}
	case int64(len(text)) > r.config.MaxBytes:
		return r.tooLarge(address)
	}
	parse := definition.Parse
	if path := strings.ToLower(res.Request.URL.Path); strings.Contains(kind, "yaml") || strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml") {
		parse = definition.ParseYAML
	}
	document, err := parse(text)
	if err != nil {
		invalid := problem.New(problem.ValidationError, "the document at %s is not a definition", address).WithCause(err)
		if p, ok := problem.As(err); ok {
			invalid.Findings = p.Findings
		}
		return invalid
	}
	e.document, e.etag = document, res.Header.Get("ETag")
	e.freshUntil = asked.Add(freshness(res.Header))
	e.forget = directive(res.Header, "no-store") != nil
	return nil
}

func (r *Resolver) tooLarge(address string) error {
	return problem.New(problem.ValidationError, "the document at %s is larger than %d bytes", address, r.config.MaxBytes)
}

// freshness is how long an answer may be used without asking again.
func freshness(header http.Header) time.Duration {
	if directive(header, "no-store") != nil || directive(header, "no-cache") != nil {
		return 0
	}
	age := directive(header, "max-age")
	if age == nil {
		return 0
	}
	seconds, err := strconv.ParseInt(strings.Trim(*age, `"`), 10, 64)
	if err != nil || seconds < 0 {
		return 0
	}
	spent, err := strconv.ParseInt(header.Get("Age"), 10, 64)
	if err != nil || spent < 0 {
		spent = 0
	}
	most := int64(maxFresh / time.Second)
	return max(0, time.Duration(min(seconds, most)-min(spent, most))*time.Second)
}

// directive returns the value of a directive of Cache-Control, nil if it is not there.
func directive(header http.Header, name string) *string {
	for _, line := range header.Values("Cache-Control") {
		for part := range strings.SplitSeq(line, ",") {
			key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			if strings.EqualFold(key, name) {
				return &value
			}
		}
	}
	return nil
}
