// Package disktest gives tests a file system that fills up.
package disktest
