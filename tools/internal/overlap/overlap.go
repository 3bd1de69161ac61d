package overlap

import "errors"

// errStopped ends a maker whose values nobody takes any more.
var errStopped = errors.New("overlap: nobody takes any more")

// Run runs the maker, which calls each for every value, and take on the values, in
// their order, in a goroutine of its own. At most two values wait. After an error of
// take, the maker's next call of each returns an error; take's counts. Run returns when both have
// ended.
func Run[T any](run func(each func(T) error) error, take func(T) error) error {
	values, stopped, ended := make(chan T, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		for v := range values {
			if err := take(v); err != nil {
				close(stopped)
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	err := run(func(v T) error {
		select {
		case values <- v:
			return nil
		case <-stopped:
			return errStopped
		}
	})
	close(values)
	if taken := <-ended; taken != nil {
		return taken
	}
	return err
}
