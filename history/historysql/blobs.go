package historysql

// keep stores what the batch's rows refer to, and marks them as not complete in themselves. It gives the size of what
// was not stored yet.
func (s *shortener) keep(c *conn) (added int64, err error) {
	id := s.batch.ExecutionID
	for i := range s.blobs {
		b := &s.blobs[i]
		n, err := c.exec(putBlob, b.hash, b.content)
		if err != nil {
			return 0, err
		}
		added += n * int64(len(b.content))
		if _, err := c.exec(putBlobRef, id, b.hash); err != nil {
			return 0, err
		}
	}
	for _, seq := range s.rows {
		if _, err := c.exec(markShort, id, seq, int64(shortVersion)); err != nil {
			return 0, err
		}
	}
	return added, nil
}

// dropBlobsOf lets go of blobs of a run whose records are being deleted, at most limit, and removes those that no other
// run refers to. It gives how many it let go of: call it, in transactions of any length, until that is 0.
func dropBlobsOf(c *conn, executionID string, limit int64) (int64, error) {
	if _, err := c.exec(dropBlobs, executionID, limit); err != nil {
		return 0, err
	}
	return c.exec(dropBlobRefs, executionID, limit)
}

// blobBytes is what keep writes.
func (s *shortener) blobBytes() int {
	n := 0
	for i := range s.blobs {
		n += len(s.blobs[i].content)
	}
	return n
}
