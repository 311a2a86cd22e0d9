package page

import "net/http"

// The pages, until each has its own file.

func (s *Server) homeView(*http.Request) (view, error)      { return view{Title: "Start"}, nil }
func (s *Server) visitView(*http.Request) (view, error)     { return view{Title: "Visit"}, nil }
func (s *Server) workflowsView(*http.Request) (view, error) { return view{Title: "Workflows"}, nil }
func (s *Server) workflowView(*http.Request) (view, error)  { return view{Title: "Workflow"}, nil }
func (s *Server) systemView(*http.Request) (view, error)    { return view{Title: "System"}, nil }
