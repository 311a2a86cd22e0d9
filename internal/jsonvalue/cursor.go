package jsonvalue

// cursor is a place in a JSON text, with the depth of the brackets around it: what both readers of texts share.
type cursor struct {
	src    []byte
	offset int
	depth  int
}

func (c *cursor) space() { c.offset = skipSpace(c.src, c.offset) }

// enter steps over an opening bracket.
func (c *cursor) enter(maxDepth int) *fault {
	if c.depth++; c.depth > maxDepth {
		return faultAt(c.offset, "the text is nested more than %d levels deep", maxDepth)
	}
	c.offset++
	c.space()
	return nil
}

// empty steps over the closing bracket of an array or object without parts.
func (c *cursor) empty(closing byte) bool {
	if c.offset < len(c.src) && c.src[c.offset] == closing {
		c.offset++
		c.depth--
		return true
	}
	return false
}

// more steps over a comma, or over the closing bracket, after which more is false.
func (c *cursor) more(closing byte) (more bool, f *fault) {
	c.space()
	if c.empty(closing) {
		return false, nil
	}
	if c.offset < len(c.src) && c.src[c.offset] == ',' {
		c.offset++
		c.space()
		return true, nil
	}
	return false, faultAt(c.offset, "expected ',' or '%c', found %s", closing, describe(c.src, c.offset))
}

// colon steps over the colon after a member name, up to the value.
func (c *cursor) colon() *fault {
	if c.space(); c.offset >= len(c.src) || c.src[c.offset] != ':' {
		return faultAt(c.offset, "expected ':' after a member name, found %s", describe(c.src, c.offset))
	}
	c.offset++
	c.space()
	return nil
}

// quote reports why no member name begins at the cursor; nil if one does.
func (c *cursor) quote() *fault {
	if c.offset < len(c.src) {
		switch c.src[c.offset] {
		case '"':
			return nil
		case '}':
			return faultAt(c.offset, "expected a member, found '}'; is there a comma too many?")
		case '\'', '/', '#':
			return unexpected(c.src, c.offset)
		}
	}
	return faultAt(c.offset, "expected a member name in double quotes, found %s", describe(c.src, c.offset))
}

// end reports what follows the value of the text; nil if nothing does.
func (c *cursor) end() *fault {
	if c.space(); c.offset < len(c.src) {
		return faultAt(c.offset, "unexpected %s after the value", describe(c.src, c.offset))
	}
	return nil
}
