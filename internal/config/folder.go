package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// suffixes of files that hold definitions, with the parser for each.
var suffixes = []struct {
	suffix string
	parse  func([]byte) (*definition.Document, error)
}{
	{".workflow.json", definition.Parse},
	{".workflow.yaml", definition.ParseYAML},
	{".workflow.yml", definition.ParseYAML},
}

// Folder finds subworkflows among the definitions of one folder, which makes it a graph.Resolver: the last
// colon-separated part of a workflow_ref is compared with document.name, so that both "unit-tests" and
// "urn:example:unit-tests" find the document named unit-tests. The folder is read at each call, since its files may
// change while a run waits; subfolders are not searched.
type Folder string

// ResolveWorkflow finds a definition. The error is *problem.Error with code WORKFLOW_NOT_FOUND, and names files that
// could not be read, one of which may be the requested one.
func (f Folder) ResolveWorkflow(_ context.Context, ref, pin string) (*definition.Document, error) {
	name := ref[strings.LastIndex(ref, ":")+1:]
	documents, broken, err := f.definitions()
	if err != nil {
		return nil, problem.New(problem.WorkflowNotFound, "workflow %q: the folder %s cannot be read", ref, f).WithCause(err)
	}
	var found []named
	for _, d := range documents {
		if d.name == name && (pin == "" || d.document.Hash() == pin) {
			found = append(found, d)
		}
	}
	switch {
	case len(found) == 1:
		return found[0].document, nil
	case len(found) > 1 && sameHash(found):
		return found[0].document, nil
	case len(found) > 1:
		return nil, problem.New(problem.WorkflowNotFound, "workflow %q: %s and %s are both named %q", ref,
			found[0].file, found[1].file, name).WithHint("Pin one of them with version_pin, or rename the other.")
	}
	return nil, notFound(ref, name, string(f), documents, broken)
}

// Lacking says in one line what an engine lacks to perform the definitions of a folder in process; "" if nothing, if there is no
// folder or if the engine cannot tell.
func Lacking(ctx context.Context, e graph.Engine, folder Folder) string {
	l, ok := e.(interface {
		Lacking(context.Context, ...*definition.Document) string
	})
	if !ok || folder == "" {
		return ""
	}
	found, _, _ := folder.definitions()
	documents := make([]*definition.Document, len(found))
	for i, d := range found {
		documents[i] = d.document
	}
	lacking := l.Lacking(ctx, documents...)
	if lacking == "" {
		return ""
	}
	return "definitions in " + string(folder) + " need what is missing here: " + lacking
}

type named struct {
	file, name string
	document   *definition.Document
}

// definitions reads every definition of the folder, by file name. Files that do not parse are listed apart: a broken
// neighbour must not stop a run that does not need it.
func (f Folder) definitions() (documents []named, broken []string, err error) {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		for _, s := range suffixes {
			if entry.IsDir() || !strings.HasSuffix(entry.Name(), s.suffix) {
				continue
			}
			document, err := read(filepath.Join(string(f), entry.Name()), s.parse)
			if errors.Is(err, fs.ErrNotExist) {
				continue // gone since the folder was listed
			}
			if err != nil {
				broken = append(broken, fmt.Sprintf("%s (%v)", entry.Name(), err))
				continue
			}
			documents = append(documents, named{entry.Name(), documentName(document), document})
		}
	}
	slices.SortFunc(documents, func(a, b named) int { return cmp.Compare(a.file, b.file) })
	return documents, broken, nil
}

func read(path string, parse func([]byte) (*definition.Document, error)) (*definition.Document, error) {
	text, err := readRegular(path)
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// documentName is document.name, "" if the document lacks one.
func documentName(d *definition.Document) string {
	root, _ := d.Value().(map[string]any)
	head, _ := root["document"].(map[string]any)
	name, _ := head["name"].(string)
	return name
}

func sameHash(found []named) bool {
	return !slices.ContainsFunc(found[1:], func(d named) bool { return d.document.Hash() != found[0].document.Hash() })
}

func notFound(ref, name, folder string, documents []named, broken []string) error {
	e := problem.New(problem.WorkflowNotFound, "workflow %q: no definition in %s is named %q", ref, folder, name)
	var names []string
	for _, d := range documents {
		names = append(names, d.name)
	}
	switch {
	case len(broken) > 0:
		return e.WithHint("These files could not be read: %s.", strings.Join(broken, "; "))
	case len(names) > 0:
		return e.WithHint("The folder has %s; --workflow-dir names another folder.", strings.Join(names, ", "))
	}
	return e.WithHint("The folder has no *.workflow.json or *.workflow.yaml file; --workflow-dir names another one.")
}
