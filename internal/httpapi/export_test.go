package httpapi

// Words are the names of the API in hints.
var Words = words

// Statuses are the statuses of codes; 0 stands for 400 or 422.
var Statuses = statuses

// The limits of event streams.
const MaxStreams, MaxCallerStreams = maxStreams, maxCallerStreams

// OpenStreams returns the number of open event streams.
func (s *Server) OpenStreams() int {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	return s.streams.all
}
