\sleep 400 ms
