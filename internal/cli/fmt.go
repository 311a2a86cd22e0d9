package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/internal/format"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

type fmtOptions struct {
	format       string
	check, write bool
}

func newFmt(a *app) *cobra.Command {
	var o fmtOptions
	cmd := &cobra.Command{
		Use:   "fmt FILE...|-",
		Short: "Format definitions",
		Long: `Print definitions with their fields in a fixed order, indented by two spaces. Comments in YAML and the hash are kept: a
definition is not changed if its meaning or the place of a comment would change. Files ending in .yaml or .yml are YAML, all others
JSON. --write changes the files. --check lists the files that would change, and exits with status 1 if there are any.`,
		Example: `  workflows-engine fmt order.workflow.yaml
  workflows-engine fmt --write *.workflow.yaml *.workflow.json
  workflows-engine fmt --check workflows/*`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactly("at least one FILE")(cmd, args)
			}
			return nil
		},
		PreRunE: exclusive("check", "write"),
		RunE:    func(_ *cobra.Command, files []string) error { return a.fmt(files, o) },
	}
	cmd.Flags().StringVar(&o.format, "format", "", "read the input as this `format`, json or yaml, whatever the extension")
	cmd.Flags().BoolVar(&o.check, "check", false, "change nothing; list the files that are not formatted")
	cmd.Flags().BoolVarP(&o.write, "write", "w", false, "change the files, and list those that changed")
	return cmd
}

// fmt formats files one after another, also after a failure. The worst failure decides the exit status.
func (a *app) fmt(files []string, o fmtOptions) error {
	worst := exitOK
	for _, file := range files {
		s, err := a.readSource(file, o.format)
		if a.ctx.Err() != nil {
			return err
		}
		if err != nil {
			a.printError(err)
			worst = exitUsage
			continue
		}
		formatted, err := s.formatted()
		if err != nil {
			a.printError(err)
			a.say("%s was not changed\n", s.name())
			worst = max(worst, exitFailed)
			continue
		}
		differs := !bytes.Equal(s.text, formatted)
		switch {
		case !o.check && !o.write || o.write && file == standardInput:
			if _, err := a.stdout.Write(formatted); err != nil {
				return err
			}
		case differs && o.check:
			fmt.Fprintln(a.human, s.name())
			worst = max(worst, exitFailed)
		case differs:
			if err := a.rewrite(file, s.text, formatted); err != nil {
				return err
			}
			fmt.Fprintln(a.human, s.name())
		}
	}
	if worst != exitOK {
		return silent{worst}
	}
	return nil
}

// formatted returns the formatted text.
func (s source) formatted() ([]byte, error) {
	if s.yaml {
		return format.YAML(s.text)
	}
	return format.JSON(s.text)
}

// rewrite replaces the text of a file that still contains was, and keeps its permissions. After any failure the file has the old text or the new one.
func (a *app) rewrite(file string, was, text []byte) error {
	path, err := filepath.EvalSymlinks(a.path(file))
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(path); err == nil {
			err = (&regularfile.Replacement{Name: path, Was: was, Text: text, Mode: info.Mode().Perm()}).Replace()
		}
	}
	if err != nil {
		return usage("cannot write %s", file).WithCause(err).WithHint("Check the permissions of the directory and the free space. The file was not changed.")
	}
	return nil
}
