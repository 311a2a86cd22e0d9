package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

func newCatalog(a *app) *cobra.Command {
	var (
		folder string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "catalog [WORD...]",
		Short: "List named definitions",
		Long: `List the definitions of the workflow directory; with words, those with the words in name or description, the best match first. run
starts a definition by the name in the first column, like definition_ref of the MCP tool workflow_start. Inputs in brackets are optional.

Invalid files are listed on standard error, with the place and a fix.`,
		Example: `  workflows-engine catalog --workflow-dir ~/workflows
  workflows-engine catalog refund
  workflows-engine catalog --json | jq -r '.workflows[].definition_ref'`,
		RunE: func(_ *cobra.Command, words []string) error {
			return a.workflows(folder, strings.Join(words, " "), asJSON)
		},
	}
	config.RegisterWorkflowDir(cmd.Flags(), &folder, "none")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// workflowDir is the directory of the flag, else that of the settings; "" without one.
func (a *app) workflowDir(flag string) string {
	if flag != "" {
		return a.path(flag)
	}
	c, err := a.flags.LoadWorkflowDir(a.env)
	if err != nil {
		return ""
	}
	return c.WorkflowDir
}

func (a *app) workflows(folder, query string, asJSON bool) error {
	c, err := a.flags.LoadWorkflowDir(a.env)
	if err != nil {
		return err
	}
	dir := a.workflowDir(folder)
	if dir == "" {
		return usage("no workflow directory is configured").WithHint("Name it with --workflow-dir or %s.", envname.WorkflowDir)
	}
	now := c.Catalog(dir, nil).Look()
	if now.Err != nil && len(now.Workflows)+len(now.Broken) == 0 {
		return now.Err
	}
	found := now.Search(query)
	if asJSON {
		return writeEncoded(a.stdout, encodeWorkflows(dir, found, now.Broken))
	}
	if now.Err != nil {
		a.printError(now.Err)
	}
	for _, b := range now.Broken {
		a.writeBroken(cmp.Or(folder, dir), b) // as the user writes it
	}
	if len(found) == 0 {
		fmt.Fprintln(a.stderr, "no workflows")
		return nil
	}
	rows := [][]string{{"NAME", "VERSION", "INPUT", "DESCRIPTION"}}
	for _, w := range found {
		rows = append(rows, []string{w.Ref, w.Version, dash(cut(inputNames(w.InputSchema), 40)), dash(cut(w.Description, 80))})
	}
	return writeTable(a.human, rows)
}

// writeBroken prints the findings of a file as validate does.
func (a *app) writeBroken(dir string, b *catalog.Broken) {
	if b.Readable() {
		if c := a.checkFile(filepath.Join(dir, b.File), "", lint.Options{}); !c.valid(false) && c.err == nil {
			writeFindings(a.stderr, a.paint, c)
			return
		}
	}
	a.say("%s: %s\n", a.paint.bold(plainCell(filepath.Join(dir, b.File))), b.Text())
	if hint := b.First().Hint; hint != "" {
		a.say("  hint: %s\n", hint)
	}
}

// inputNames returns the fields of an input, the optional ones in brackets.
func inputNames(schema map[string]any) string {
	properties, _ := schema["properties"].(map[string]any)
	names := requiredNames(schema)
	for _, name := range jsonvalue.Keys(properties) {
		if !slices.Contains(names, name) {
			names = append(names, "["+name+"]")
		}
	}
	return strings.Join(names, " ")
}

func encodeWorkflows(dir string, found []*catalog.Workflow, broken []*catalog.Broken) jsonvalue.Ordered {
	list, files := []jsonvalue.Ordered{}, []checkedFile{}
	for _, w := range found {
		row := jsonvalue.Ordered{{"definition_ref", w.Ref}, {"name", w.Name}, {"version", w.Version}}
		row.Text("description", w.Description)
		if w.InputSchema != nil {
			row.Put("input_schema", w.InputSchema)
		}
		row.Put("file", w.File)
		row.Put("definition_hash", w.Hash)
		row.Put("warnings", encodeFindings(w.Warnings))
		list = append(list, row)
	}
	for _, b := range broken {
		file := checkedFile{File: b.File, Name: b.Name, Findings: encodeFindings(b.Err.Findings)}
		if len(file.Findings) == 0 {
			file.Error = b.Err.Error()
		}
		files = append(files, file)
	}
	return jsonvalue.Ordered{{"folder", dir}, {"workflows", list}, {"broken", files}}
}

// definitionFile returns the file of a definition that a command line names: the file itself, or a workflow's in the directory. flag is the
// value of --workflow-dir.
func (a *app) definitionFile(named, flag string) (string, error) {
	info, err := os.Stat(a.path(named))
	if named == standardInput || err == nil && !info.IsDir() {
		return named, nil
	}
	dir, isPath := a.workflowDir(flag), strings.ContainsAny(named, `/\`) || strings.HasSuffix(named, ".json") || strings.HasSuffix(named, ".yaml") || strings.HasSuffix(named, ".yml")
	switch {
	case isPath:
		return named, nil // reading it reports the error
	case dir == "" && a.nearFile(named) != "":
		return "", usage("file %s not found", named).WithHint("%s", suggest.Hint(a.nearFile(named)))
	case dir == "":
		return "", usage("file %s not found", named).WithHint("To run a workflow by name, name its directory with --workflow-dir or %s.", envname.WorkflowDir)
	}
	file, err := catalog.New(dir, catalog.Options{}).Look().FileOf(named)
	if err != nil {
		return "", err
	}
	return filepath.Join(cmp.Or(flag, dir), file), nil
}

// completeWorkflows completes a first argument with the names of workflows beside those of files.
func (a *app) completeWorkflows(folder *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		dir := a.workflowDir(*folder)
		if len(args) > 0 || dir == "" {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var names []string
		for _, w := range catalog.New(dir, catalog.Options{}).Look().Workflows {
			names = append(names, cobra.CompletionWithDesc(w.Ref, cut(cmp.Or(w.Description, w.Version), 60)))
		}
		return names, cobra.ShellCompDirectiveDefault
	}
}
