// Package seams has the seams, each kind in its own file, and the clients of their programs.
package seams
