package definition

func (x *config) interrupt() {
	i := &InterruptConfig{Prompt: x.text("prompt"), PromptRef: x.text("prompt_ref")}
	i.ResumeSchemaRaw, _ = x.raw["resume_schema"].(map[string]any)
	i.ResumeSchema, i.ResumeSchemaErr = x.schema("resume_schema", checked)
	x.v.node.Interrupt = i
	x.unfilled("only the prompt of an interrupt can be filled in", "prompt")
	if prompt := x.json.Get("prompt"); prompt != nil && x.v.json.Get("prompt_templates") == nil {
		x.c.lintLiterals(prompt, x.at.member("prompt"), x.v, `have it filled in: name the extension "templates" and put "prompt_templates": true beside config`)
	}
	if i.Prompt == "" {
		x.ignored("prompt_ref", "nothing resolves prompt_ref: whoever answers sees an empty prompt; write the prompt itself")
	} else {
		x.ignored("prompt_ref", "nothing resolves prompt_ref; the prompt is shown")
	}
	i.Timeout = x.timeout("the interrupt waits until somebody answers")
}
