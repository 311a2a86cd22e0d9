package mcphost

// Approval is what a user may write into the table of the server so that the host calls its tools without asking. Answers to questions are
// left to a person: the host goes on asking before it gives one.
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
