package history

// WithoutNote is a payload without the note of what was passed over when it was read.
func (p Payload) WithoutNote() Payload {
	p.over = nil
	return p
}
