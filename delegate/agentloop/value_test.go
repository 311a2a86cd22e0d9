package agentloop

import "testing"

// TestRecordedNamesHaveOneSpelling: a recorded tool is what its members of the right names say, whatever else an imported history holds.
func TestRecordedNamesHaveOneSpelling(t *testing.T) {
	t.Parallel()
	var tools []Tool
	err := fromValue([]any{map[string]any{
		"name": "pay", "parameters": map[string]any{"maximum": 5.0}, "readOnly": false, "readonly": true, "gate": "ask", "onCrash": "ask", "onCra\u017fh": "repeat",
	}}, &tools)
	if err != nil || len(tools) != 1 || tools[0].ReadOnly || tools[0].OnCrash != "ask" || tools[0].Gate != "ask" || tools[0].Parameters["maximum"] != 5.0 {
		t.Errorf("%+v, %v", tools, err)
	}
}
