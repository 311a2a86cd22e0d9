package historysql

// fileState tells whether anything but a store's own appends can have changed the file: it is equal to an earlier one
// only if nothing has.
type fileState struct {
	// version changes when another connection, of any process, has committed; see conn.version. Those of two connections
	// have nothing to do with each other.
	version int64
	// changes counts the connections that the store has used, and the transactions that were no appends.
	changes int64
}

// unknownVersion is the version until it is asked for in a transaction. Others are not negative.
const unknownVersion = -1

// fileState gives the state, which stays the same until the transaction that has begun is over.
func (s *Store) fileState(c *conn) (fileState, error) {
	if s.state.version == unknownVersion {
		v, err := c.version()
		if err != nil {
			return fileState{}, err
		}
		s.state.version = v
	}
	return s.state, nil
}
