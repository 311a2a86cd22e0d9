package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/authoring"
	"github.com/workflows-engine/workflows-engine/internal/format"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

func newNew(a *app) *cobra.Command {
	var template string
	var kinds []string
	for _, t := range authoring.Templates() {
		kinds = append(kinds, fmt.Sprintf("  %-9s %s", t.Name, t.What))
	}
	cmd := &cobra.Command{
		Use:   "new NAME|FILE",
		Short: "Create a definition and its test",
		Long: `Create a definition and its test file beside it: NAME.workflow.yaml and NAME.test.yaml. A FILE that ends in
.workflow.json is written as JSON. Existing files are never overwritten. The templates:

` + strings.Join(kinds, "\n"),
		Example: `  workflows-engine new order
  workflows-engine new --template approval workflows/expenses.workflow.yaml
  workflows-engine test order.test.yaml`,
		Args: exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error { return a.create(args[0], template) },
	}
	cmd.Flags().StringVarP(&template, "template", "t", authoring.TemplateNames()[0], problem.OrList(authoring.TemplateNames()))
	_ = cmd.RegisterFlagCompletionFunc("template", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var list []cobra.Completion
		for _, t := range authoring.Templates() {
			list = append(list, cobra.CompletionWithDesc(t.Name, t.What))
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	})
	return cmd
}

// newFiles returns the file names of a definition and its tests, and the name of the workflow.
func newFiles(file string) (workflow, tests, name string, err error) {
	folder, base := filepath.Split(file)
	name = base
	ending := ".workflow.yaml"
	for _, known := range []string{".workflow.yaml", ".workflow.yml", ".workflow.json"} {
		if stem, ok := strings.CutSuffix(base, known); ok {
			name, ending = stem, known
		}
	}
	if name == "" || name == base && filepath.Ext(base) != "" {
		return "", "", "", usage("invalid name %q for a definition", file).
			WithHint("Write a name without an ending, as in order, or order.workflow.yaml or order.workflow.json.")
	}
	return folder + name + ending, folder + name + ".test.yaml", name, nil
}

// create writes a definition and its tests.
func (a *app) create(file, template string) error {
	workflow, tests, name, err := newFiles(file)
	if err != nil {
		return err
	}
	text, test := authoring.TemplateFiles(template, name)
	if text == "" {
		return usage("unknown template %q", template).WithHint("Use %s.", problem.OrList(authoring.TemplateNames()))
	}
	if strings.HasSuffix(workflow, ".json") {
		doc, err := definition.ParseYAML([]byte(text))
		if err != nil {
			return err
		}
		formatted, err := format.JSON(doc.Canonical())
		if err != nil {
			return err
		}
		text = string(formatted)
	}
	for _, path := range []string{workflow, tests} {
		if _, err := os.Lstat(a.path(path)); err == nil {
			return exists(path)
		}
	}
	if err := a.writeNew(workflow, text); err != nil {
		return err
	}
	if err := a.writeNew(tests, test); err != nil {
		return err
	}
	fmt.Fprintf(a.human, "%s\n%s\n\nTry it:\n", workflow, tests)
	fmt.Fprintf(a.human, "  %s\n  %s\n", shellword.Line(program, "test", tests), shellword.Line(program, "validate", workflow))
	return nil
}

// writeNew writes a file that does not exist.
func (a *app) writeNew(file, text string) error {
	f, err := os.OpenFile(a.path(file), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return exists(file)
	}
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err // the message has the path as the user wrote it
		}
		cannot := usage("cannot write %s", file).WithCause(err)
		if errors.Is(err, fs.ErrNotExist) {
			cannot = cannot.WithHint("Create its directory first: %s.", shellword.Line("mkdir", "-p", filepath.Dir(file)))
		}
		return cannot
	}
	return nil
}

func exists(file string) error {
	return usage("%s exists and is not overwritten", file).WithHint("Choose another name, or remove the file.")
}
