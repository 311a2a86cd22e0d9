package temporal

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// definitions finds definitions in the runs of the namespace, since Temporal stores no others. It remembers those found lately.
type definitions struct {
	o *Options
	b backend

	mu    sync.Mutex
	known map[string]history.StoredDefinition // by hash
}

// maxKnown bounds the definitions remembered.
const maxKnown = 256

func newDefinitions(o *Options, b backend) *definitions {
	return &definitions{o: o, b: b, known: map[string]history.StoredDefinition{}}
}

func (d *definitions) put(s history.StoredDefinition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxKnown {
		clear(d.known)
	}
	d.known[s.Hash] = s
}

func (d *definitions) get(hash string) (history.StoredDefinition, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.known[hash]
	return s, ok
}

// Definition implements library.Store.
func (d *definitions) Definition(ctx context.Context, hash string) (history.StoredDefinition, error) {
	if s, ok := d.get(hash); ok {
		return s, nil
	}
	if !isHash(hash) {
		return history.StoredDefinition{}, errUnknownDefinition()
	}
	return d.search(ctx, fmt.Sprintf("%s = %s", attrHash.GetName(), quoted(hash)), "")
}

// DefinitionByName implements library.Store: the definition of the run with the name that was started last.
func (d *definitions) DefinitionByName(ctx context.Context, name, version string) (history.StoredDefinition, error) {
	return d.search(ctx, fmt.Sprintf("%s = %s", attrDefinition.GetName(), quoted(name)), version)
}

// List implements library.Store, for names that resemble an unknown one.
func (d *definitions) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	p, err := d.b.list(ctx, ofRuns, 100, nil)
	if err != nil {
		return history.ListPage{}, err
	}
	var page history.ListPage
	for _, info := range p.runs {
		page.Executions = append(page.Executions, rowOf(d.o.Converter, info))
	}
	return page, nil
}

func (d *definitions) search(ctx context.Context, query, version string) (history.StoredDefinition, error) {
	page, err := d.b.list(ctx, ofRuns+" AND "+query, 100, nil)
	if err != nil {
		return history.StoredDefinition{}, failureOf(ctx, err, d.o.Address, "")
	}
	for _, info := range page.runs {
		row := rowOf(d.o.Converter, info)
		if version != "" && row.DefinitionVersion != version {
			continue
		}
		return d.of(ctx, row.ID, row.DefinitionHash)
	}
	return history.StoredDefinition{}, errUnknownDefinition()
}

// of returns the definition of a run.
func (d *definitions) of(ctx context.Context, executionID, hash string) (history.StoredDefinition, error) {
	if s, ok := d.get(hash); ok {
		return s, nil
	}
	var s source
	if _, err := d.b.query(ctx, executionID, queryDefinition, nil, &s); err != nil {
		return history.StoredDefinition{}, failureOf(ctx, err, d.o.Address, executionID)
	}
	stored := s.stored(hash)
	d.put(stored)
	return stored, nil
}

func errUnknownDefinition() error {
	return problem.New(problem.DefinitionNotFound, "the definition is not stored")
}

// isHash reports whether a reference has the form of a definition hash.
func isHash(ref string) bool {
	return len(ref) >= 64 && strings.Trim(strings.TrimPrefix(ref, "sha256:"), "0123456789abcdef") == ""
}

// maxBound bounds the text of the definitions that a run is bound to, in bytes. Others are resolved when the run reaches them.
const maxBound = 512 << 10

// bind returns the definitions that a run is bound to: its own and those of its subworkflows that are at hand.
func bind(ctx context.Context, l *library.Library, prog *definition.Program, inherited map[string]string) map[string]source {
	bound := map[string]source{}
	size := 0
	var add func(d *history.StoredDefinition, prog *definition.Program, inherited map[string]string)
	add = func(d *history.StoredDefinition, prog *definition.Program, inherited map[string]string) {
		if _, done := bound[d.Hash]; done || len(bound) > 0 && size+len(d.Text) > maxBound {
			return
		}
		size += len(d.Text)
		s := sourceOf(d)
		var below []history.StoredDefinition
		s.Subworkflows, below = l.Versions(ctx, prog, inherited)
		bound[d.Hash] = s
		for i := range below {
			if child, err := library.CompileStored(below[i]); err == nil && child != nil {
				add(&below[i], child, s.Subworkflows)
			}
		}
	}
	add(admit.StoredForm(prog), prog, inherited)
	return bound
}
