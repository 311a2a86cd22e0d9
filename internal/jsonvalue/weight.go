package jsonvalue

// What decoded values take in memory, on an average that is on the safe side.
const (
	elementBytes = 24 // its place in a list, and a number
	objectBytes  = 320
	emptyBytes   = 48
)

// DecodedBytes returns about what Decode would make of a text, in bytes, from a look at its brackets and commas. It stops above a limit.
func DecodedBytes(text []byte, limit int) int {
	n := len(text)
	for i := 0; i < len(text) && n <= limit; i++ {
		switch text[i] {
		case '{':
			if n += objectBytes; i+1 < len(text) && text[i+1] == '}' {
				n -= objectBytes - emptyBytes
			}
		case '[', ',':
			n += elementBytes
		case '"':
			i = skipString(text, i+1) - 1
		}
	}
	return n
}
