package mcphost

// Approval is a line for the table of the server that lets the host call its tools without asking. Answers to questions are left out: the
// host still asks before it gives one.
const Approval = `default_tools_approval_mode = "approve"
tools.workflow_resume.approval_mode = "prompt"
`

// NeedsApproval reports whether the host asks a person before calls that change something, and the text does not say otherwise of the
// server.
func (h Host) NeedsApproval(text []byte, name string) bool {
	if !h.asks {
		return false
	}
	values, err := h.parse("", text)
	if err != nil {
		return false
	}
	servers, _ := values[h.key].(map[string]any)
	server, _ := servers[name].(map[string]any)
	return server["default_tools_approval_mode"] == nil
}
