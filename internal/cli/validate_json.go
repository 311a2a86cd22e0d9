package cli

// checkedList is what validate --json prints.
type checkedList struct {
	Valid bool          `json:"valid"`
	Files []checkedFile `json:"files"`
}

type checkedFile struct {
	File    string `json:"file"`
	Valid   bool   `json:"valid"`
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Hash    string `json:"hash,omitempty"`
	// Error says why the file could not be read at all.
	Error    string        `json:"error,omitempty"`
	Findings []findingJSON `json:"findings"`
}

type findingJSON struct {
	Severity   string         `json:"severity"`
	Code       string         `json:"code"`
	Message    string         `json:"message"`
	Hint       string         `json:"hint,omitempty"`
	Line       int            `json:"line,omitempty"`
	Column     int            `json:"column,omitempty"`
	NodeID     string         `json:"node_id,omitempty"`
	Pointer    string         `json:"instance_path"`
	Keyword    string         `json:"keyword,omitempty"`
	SchemaPath string         `json:"schema_path,omitempty"`
	Params     map[string]any `json:"params,omitempty"`
}

func encodeChecked(results []checked, strict bool) checkedList {
	list := checkedList{Valid: true, Files: []checkedFile{}}
	for _, c := range results {
		file := checkedFile{File: c.source.name(), Valid: c.valid(strict), Findings: []findingJSON{}}
		if c.err != nil {
			file.Error = c.err.Error()
		}
		if c.document != nil {
			file.Name, file.Version = documentHead(c.document)
			file.Hash = c.document.Hash()
		}
		for _, f := range c.findings {
			file.Findings = append(file.Findings, findingJSON{
				Severity: string(f.Severity), Code: string(f.Code), Message: f.Message, Hint: f.Hint,
				Line: f.At.Line, Column: f.At.Column, NodeID: f.At.NodeID, Pointer: f.At.Pointer,
				Keyword: f.Keyword, SchemaPath: f.SchemaPath, Params: f.Params,
			})
		}
		list.Valid = list.Valid && file.Valid
		list.Files = append(list.Files, file)
	}
	return list
}
