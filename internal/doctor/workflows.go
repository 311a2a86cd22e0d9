package doctor

import (
	"path/filepath"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// Workflows checks the workflow directory of the settings, if they name one.
func (r *Report) Workflows(subject string, c *config.Config) {
	folder := c.Catalog(c.WorkflowDir, nil)
	if folder == nil {
		return
	}
	now := folder.Look()
	if now.Err != nil {
		r.AddError(WorkflowFile, subject, now.Err, "")
		return
	}
	for _, b := range now.Broken {
		file := filepath.Join(folder.Folder(), b.File)
		r.Add(Problem, WorkflowFile, subject, "workflows-engine validate "+file, "%s is invalid: %s", file, b.Text())
	}
	r.Add(OK, Workflows, subject, "", "definitions in %s that can be started by name: %d", folder.Folder(), len(now.Workflows))
}
